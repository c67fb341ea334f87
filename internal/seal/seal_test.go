package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

type record struct {
	Version int      `json:"version"`
	Name    string   `json:"name"`
	Layers  []string `json:"layers"`
}

func sample() record {
	return record{Version: 1, Name: "fix\n}\"checksum\": \"", Layers: []string{"a", `,"checksum":"00000000"}`}}
}

// Each form, as it is written.
func forms(t testing.TB) map[string][]byte {
	t.Helper()
	whole, err := seal.Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"record": whole, "line": seal.Line(plain)}
}

// An older program reads a sealed record, and this one an older record.
func TestSealedRecordsStayJSON(t *testing.T) {
	for name, data := range forms(t) {
		var old, read record
		if err := errors.Join(json.Unmarshal(data, &old), seal.Decode(data, &read)); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		if diff := cmp.Diff([]record{sample(), sample()}, []record{old, read}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !bytes.Contains(data, []byte("checksum")) {
			t.Errorf("%s has no checksum: %s", name, data)
		}
	}
	plain, err := json.MarshalIndent(sample(), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	var read record
	if err := seal.Decode(plain, &read); err != nil || !cmp.Equal(read, sample()) {
		t.Errorf("a record without a checksum reads as %v, %v", read, err)
	}
}

// No flipped bit and no missing end gives another content: damage is reported,
// unless only the checksum was damaged.
func TestDamageIsTold(t *testing.T) {
	for name, whole := range forms(t) {
		check := func(data []byte, how string, at int) {
			var read record
			switch err := seal.Decode(data, &read); {
			case errors.Is(err, seal.ErrDamaged):
			case err != nil:
				t.Errorf("%s, %s at %d: %v", name, how, at, err)
			case !cmp.Equal(read, sample()):
				t.Errorf("%s, %s at %d reads as %v", name, how, at, read)
			}
		}
		for at := range whole {
			check(whole[:at], "cut", at)
			for bit := range 8 {
				flipped := bytes.Clone(whole)
				flipped[at] ^= 1 << bit
				check(flipped, "flipped", at)
			}
			zeroed := bytes.Clone(whole)
			clear(zeroed[at:])
			check(zeroed, "zeroed", at)
		}
	}
}

// An editor of a record by hand removes the checksum, or empties it.
func TestEditedByHand(t *testing.T) {
	whole := forms(t)["record"]
	edited := bytes.Replace(whole, []byte(`"version": 1`), []byte(`"version": 2`), 1)
	var read record
	if err := seal.Decode(edited, &read); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("edited without a word: %v", err)
	}
	at := bytes.LastIndex(edited, []byte(`"checksum": "`)) + len(`"checksum": "`)
	emptied := append(bytes.Clone(edited[:at]), "\"\n}\n"...)
	if err := seal.Decode(emptied, &read); err != nil || read.Version != 2 {
		t.Errorf("with an empty checksum: %v, %v", read, err)
	}
}

func FuzzOpen(f *testing.F) {
	for _, data := range forms(f) {
		f.Add(data)
	}
	f.Add([]byte(`{"version": 1}`))
	f.Add([]byte(`,"checksum":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read map[string]any
		if err := seal.Decode(data, &read); err != nil {
			if !errors.Is(err, seal.ErrDamaged) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		again, err := seal.Encode(read)
		if err != nil {
			t.Fatal(err)
		}
		var same map[string]any
		if err := seal.Decode(again, &same); err != nil || !cmp.Equal(read, same) {
			t.Fatalf("%q reads as %v, and written again as %v, %v", data, read, same, err)
		}
	})
}
