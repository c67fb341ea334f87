package agents_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// screenClient is a real client that a human sits in front of.
type screenClient struct {
	insideClient
	ready string // what it shows once it takes a task
	quit  string // what is typed to end it
}

func screenClients() []screenClient {
	shown := map[string][2]string{
		"claude":   {"bypass permissions on", "/exit"},
		"codex":    {"OpenAI Codex", "/quit"},
		"gemini":   {"Type your message", "/quit"},
		"opencode": {"Ask anything", "/exit"},
	}
	var all []screenClient
	for _, c := range insideClients() {
		all = append(all, screenClient{c, shown[c.name][0], shown[c.name][1]})
	}
	return all
}

// The full-screen interface of each client: it asks nothing, takes typed and
// pasted text, follows the size of the terminal, and goes on while no one looks,
// whether it was left or the terminal was lost.
func TestRealScreens(t *testing.T) {
	dir := installed(t)
	for _, c := range screenClients() {
		t.Run(c.name, func(t *testing.T) { c.works(t, dir) })
	}
}

func (c screenClient) works(t *testing.T, dir string) {
	b := c.begin(t, dir, false)
	h, asked := b.h, b.asked

	first := h.OnTerminal(40, 120, append([]string{"agent", "run", c.name, "--name", "box"}, b.flags...)...)
	first.Await(0, c.ready)
	c.gives(first, asked, "Do it")
	for _, name := range []string{"own-write.txt", "own-shell.txt"} {
		// Committed while the client waits for the next task.
		await(t, first, "a commit of "+name, func() bool { return h.Command(h.Repo, "git", "show", "box:"+name).Stdout == "x\n" })
	}
	if !first.HasColours() {
		t.Error("nothing was shown in colour")
	}
	mark := first.Mark()
	first.Type("\x1dd")
	if code := first.Ends(); code != 0 {
		t.Errorf("left, it exited %d: %s", code, first.Tail())
	}
	first.Await(mark, "to come back: litterbox agent attach box")
	if got := h.Must("agent", "list"); !strings.Contains(got, "working") {
		t.Errorf("after it was left: %s", got)
	}

	second := h.OnTerminal(50, 132, "agent", "attach", "box")
	sized := func(term *program.Terminal, want string) {
		t.Helper()
		await(t, term, "a terminal of "+want+" inside", func() bool {
			return strings.Contains(h.InsideShell("box", `for p in /proc/[0-9]*/fd/0; do case $(readlink $p) in /dev/pts/*) stty size <$p;; esac; done 2>/dev/null; true`).Stdout, want+"\n")
		})
	}
	sized(second, "50 132")
	second.Resize(45, 111)
	sized(second, "45 111")
	c.gives(second, asked, "\x1b[200~Now the pasted task\x1b[201~")
	// The connection is lost.
	second.HangUp()
	second.Ends()
	if got := h.Must("agent", "list"); !strings.Contains(got, "working") {
		t.Errorf("after its terminal was lost: %s", got)
	}

	third := h.OnTerminal(40, 100, "agent", "attach", "box")
	sized(third, "40 100")
	c.gives(third, asked, "The third task")
	mark = third.Mark()
	third.Type(c.quit)
	third.Returns(third.Over)
	if code := third.Ends(); code != 0 {
		t.Errorf("ended, it exited %d: %s", code, third.Tail())
	}
	third.Await(mark, "outcome completed")
	if len(b.m.strange) > 0 {
		t.Logf("strange: %q", b.m.strange)
	}
}

// gives types a task until the model was asked it, and has answered.
func (c screenClient) gives(s *program.Terminal, asked *heard, task string) {
	words := strings.TrimSuffix(strings.TrimPrefix(task, "\x1b[200~"), "\x1b[201~")
	mark := s.Mark()
	s.Type(task)
	s.Await(mark, words)
	s.Returns(func() bool { return asked.has(words) })
	s.Await(mark, "done")
}

// patience is how long something may take, even on a slow machine.
const patience = 3 * time.Minute

// await waits for a condition that is checked again and again.
func await(t *testing.T, s *program.Terminal, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there never was %s; the terminal showed:\n%s", what, s.Tail())
		}
	}
}

// heard keeps what a model was asked.
type heard struct {
	of http.Handler

	mu  sync.Mutex
	all []string
}

func (a *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.all = append(a.all, string(body))
	a.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	a.of.ServeHTTP(w, r)
}

func (a *heard) has(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if strings.Contains(one, text) {
			return true
		}
	}
	return false
}
