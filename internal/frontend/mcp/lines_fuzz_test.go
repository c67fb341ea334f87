package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
)

// FuzzLines lets anything arrive on standard input: every line of the answer is a
// message, and a request afterwards is answered, once.
func FuzzLines(f *testing.F) {
	const hello = `{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"claude-code","version":"2.0.1"}},"jsonrpc":"2.0","id":0}` + "\n" +
		`{"method":"notifications/initialized","jsonrpc":"2.0"}` + "\n"
	for _, seed := range []string{
		hello + `{"method":"tools/list","jsonrpc":"2.0","id":1}`,
		hello + `{"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"sandbox-create","arguments":{"name":"works","branch":null}},"jsonrpc":"2.0","id":2}` + "\n" +
			`{"method":"tools/call","params":{"name":"sandbox-list","arguments":{}},"jsonrpc":"2.0","id":"3"}` + "\n" +
			`{"method":"notifications/cancelled","params":{"requestId":"3","reason":"AbortError"},"jsonrpc":"2.0"}`,
		hello + `[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sandbox-list"}},{"jsonrpc":"2.0","id":4,"method":"ping"}]`,
		hello + `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"sandbox-edit","arguments":{"path":7}}}` + "\r\n" +
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"sandbox-list","arguments":{"session":{}}}}`,
		`{"jsonrpc":"2.0","id":6,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":null,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":1e30,"method":"ping"}`,
		hello + hello, "[]", "[[[", "null", "\x00\xff", `{"method":"logging/setLevel","id":8,"jsonrpc":"2.0","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, "",
	} {
		f.Add([]byte(seed))
	}
	made, end := mcp.Server(&fake{}, true) // a call without a session begins one
	f.Cleanup(end)
	const last = `"the very last"`
	f.Fuzz(func(t *testing.T, input []byte) {
		if bytes.Contains(input, []byte("very")) || bytes.Contains(input, []byte(`\u`)) {
			t.Skip("that id may be taken")
		}
		ours, theirs := io.Pipe()
		answers, says := io.Pipe()
		served, err := made.Connect(t.Context(), mcp.Lines(ours, says), nil)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan int)
		go func() {
			count := 0
			for lines := bufio.NewReader(answers); ; {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					break
				}
				var message struct {
					Version string          `json:"jsonrpc"`
					ID      json.RawMessage `json:"id"`
				}
				if err := json.Unmarshal(line, &message); err != nil || message.Version != "2.0" {
					t.Errorf("%q is answered by %q: %v", input, line, err)
				}
				if string(message.ID) == last {
					count++
					_ = theirs.Close() // there is nothing more to say
				}
			}
			answered <- count
		}()
		stuck := time.AfterFunc(time.Minute, func() {
			t.Errorf("%q: nobody answers any more", input)
			_ = theirs.Close()
		})
		text := string(input) + "\n" + `{"jsonrpc":"2.0","id":` + last + `,"method":"tools/call","params":{"name":"sandbox-list","arguments":{}}}` + "\n"
		_, _ = io.Copy(theirs, strings.NewReader(text)) // a server that does not read all of it does not answer
		_ = served.Wait()                               // the end of input ends it, with or without an error
		stuck.Stop()
		_ = says.Close()
		if count := <-answered; count != 1 {
			t.Errorf("%q: the last call is answered %d times", input, count)
		}
	})
}
