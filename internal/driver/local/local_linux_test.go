package local_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A socket answers while a process listens, and only then.
func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	answers := func(want bool) {
		t.Helper()
		if got, err := local.Answers(t.Context(), dir); err != nil || got != want {
			t.Errorf("it answers: %v, %v", got, err)
		}
	}
	answers(false)
	for range 2 { // the leftover of a first start is replaced
		file, err := local.Listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		answers(true)
		listener, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := local.Dial(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		listener.Close()
		file.Close()
		answers(false)
	}
	for range 2 { // forgetting a missing one is not an error
		if err := local.Forget(dir); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestReady(t *testing.T) {
	for said, want := range map[string]string{
		"\x01":            "",
		"\x01 and more":   "",
		"":                "without a message",
		"ecannot mount /": "cannot mount /",
		"?":               "not understood",
	} {
		err := local.Ready(strings.NewReader(said), 1, 'e')
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", said, err, want)
		}
	}
}

func TestPlace(t *testing.T) {
	type handle struct{ PID int }
	if got, err := local.Place[handle](driver.Lease{Handle: []byte(`{"PID": 7}`)}); err != nil || got.PID != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := local.Place[handle](driver.Lease{Handle: []byte("{")}); fault.KindOf(err) != fault.Internal {
		t.Errorf("a torn handle: %v", err)
	}
}
