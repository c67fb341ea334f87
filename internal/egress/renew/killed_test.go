package renew_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/egress/renew"
	"github.com/litterbox-sandbox/litterbox/internal/login"
)

// killedIn makes this test binary renew the login below a directory and be
// killed at some step of that.
const killedIn, killedAt = "LITTERBOX_TEST_RENEW", "LITTERBOX_TEST_RENEW_AT"

func kill() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// spoken returns a host's answer in two pieces, and calls at before the piece
// of that number; the end is the third.
type spoken struct {
	pieces []string
	number int
	at     func(piece int)
}

func (s *spoken) Read(p []byte) (int, error) {
	s.at(s.number)
	if s.number == len(s.pieces) {
		return 0, io.EOF
	}
	s.number++
	return copy(p, s.pieces[s.number-1]), nil
}

func (s *spoken) Close() error {
	s.at(len(s.pieces) + 1)
	return nil
}

const document = `{"claudeAiOauth":{"accessToken":"old-access","refreshToken":"old-refresh","expiresAt":1000,"scopes":["one"]}}`

// renewLogin renews the login below dir as a client inside asks for it, and
// returns what the client reads. ask is the host.
func renewLogin(t *testing.T, dir string, ask func(body string) *http.Response) (int, string) {
	t.Helper()
	known, ok := login.ByName("claude")
	if !ok {
		t.Fatal("there is no such login")
	}
	kept := &renew.Kept{
		Login: known, Path: filepath.Join(dir, "credentials.json"), Own: filepath.Join(dir, "own.lock"), Locks: []string{filepath.Join(dir, "theirs.lock")},
		Stand:     func(values []string) ([]string, error) { return make([]string, len(values)), nil },
		IsRefresh: func(text string) bool { return text == "placeholder" },
	}
	hook := renew.New(func() []*renew.Kept { return []*renew.Kept{kept} })
	way := hook.Wrap(&egress.Session{Name: known.Renewal.Hosts[0], Port: 443}, intercept.RoundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return ask(string(body)), nil
	}))
	body := fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":"placeholder","client_id":%q}`, known.Renewal.Client)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+known.Renewal.Hosts[0]+known.Renewal.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := way.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	hook.Wait(t.Context())
	return response.StatusCode, string(content)
}

func answering(at func(int)) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: &spoken{at: at, pieces: []string{
		`{"access_token":"new-access","refresh_token":"new-refresh",`, `"expires_in":3600}`,
	}}}
}

// The host counts the old refresh token as spent once it has answered. Killed at
// any step after the answer has come, the next renewal has the new one.
func TestKilledWhileItRenews(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		renewLogin(t, dir, func(string) *http.Response {
			return answering(func(piece int) {
				if fmt.Sprint(piece) == os.Getenv(killedAt) {
					kill()
				}
			})
		})
		return
	}
	for piece, c := range []struct {
		name string
		lost bool // the host is asked again, with the token that it has spent
	}{{"before the answer", true}, {"within the answer", true}, {"after the answer", false}, {"before the file is written", false}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "credentials.json")
			if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			again := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledWhileItRenews$")
			again.Env = append(os.Environ(), killedIn+"="+dir, fmt.Sprintf("%s=%d", killedAt, piece))
			output, err := again.CombinedOutput()
			if err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("it was not killed: %v\n%s", err, output)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != document {
				t.Fatalf("the file is %s, %v", content, err)
			}
			// The killed one's lock is stale.
			if err := os.Chtimes(filepath.Join(dir, "theirs.lock"), time.Unix(0, 0), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			asked := 0
			code, inside := renewLogin(t, dir, func(body string) *http.Response {
				asked++
				if !strings.Contains(body, "old-refresh") {
					t.Errorf("the host is asked with %s", body)
				}
				return answering(func(int) {})
			})
			if code != http.StatusOK || strings.Contains(inside, "new-") {
				t.Errorf("the client reads %d %s", code, inside)
			}
			if lost := asked > 0; lost != c.lost {
				t.Errorf("the host is asked %d times", asked)
			}
			known, _ := login.ByName("claude")
			kept, err := login.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			values, err := known.Values(kept)
			if err != nil || values[0] != "new-access" || values[1] != "new-refresh" || time.Until(known.Ends(kept)) < 50*time.Minute {
				t.Errorf("the file has %q until %s, %v", values, known.Ends(kept), err)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".*"))
			if err != nil || len(left) > 0 {
				t.Errorf("%q is left, %v", left, err)
			}
		})
	}
}

// A login that the human has renewed meanwhile is not overwritten.
func TestACutOffRenewalOfAnotherLogin(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "credentials.json")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	pending, err := login.Begin(path, "another-refresh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(pending, `{"access_token":"new-access","refresh_token":"new-refresh"}`); err != nil {
		t.Fatal(err)
	}
	known, _ := login.ByName("claude")
	if recovered, err := known.Recover(path); recovered || err != nil {
		t.Errorf("recovered %t, %v", recovered, err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != document {
		t.Errorf("the file is %s, %v", content, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
