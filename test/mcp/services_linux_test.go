package mcp_test

import (
	"strings"
	"testing"
	"time"
)

// logsOf reads what a service has printed, as an agent does: the last lines,
// then pages from the beginning. The service prints 1 to 300 and a line that a
// terminal would obey.
func (c *client) logsOf(service string) {
	c.Helper()
	// It runs before it has printed everything.
	var last answer
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if last = c.must("sandbox-service", args{"action": "logs", "service": service, "lines": 3}); strings.Contains(last.str("log"), "red") {
			break
		}
	}
	if !strings.HasSuffix(last.str("log"), "\n300\n  \ufffd[31mred\n") || last.is("more") {
		c.Errorf("the last lines: %q", last.data)
	}
	// Nothing has come since.
	if none := c.must("sandbox-service", args{"action": "logs", "service": service, "from": last.num("next")}); none.str("log") != "" || none.num("next") != last.num("next") {
		c.Errorf("behind the end: %q", none.data)
	}
	var all string
	pages := 0
	for from, more := 1, true; more && pages < 20; pages++ {
		page := c.must("sandbox-service", args{"action": "logs", "service": service, "from": from, "lines": 100})
		all += page.str("log")
		from, more = page.num("next"), page.is("more")
	}
	if pages < 3 || !strings.Contains(all, "\n2\n3\n4\n") || strings.Count(all, "\n100\n101\n") != 1 || strings.Count(all, "\n200\n201\n") != 1 {
		c.Errorf("%d pages: %q", pages, all)
	}
	c.fails("not_found", "sandbox-service", args{"action": "logs", "service": "nothing"}, "nothing")
}

// An agent learns of ports when it creates or opens a sandbox, and sees them in
// the list.
func TestPorts(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Put(h.Repo+"/.litterbox.toml", "[container]\nports = { web = 3000 }\n")
	h.Git("add", ".")
	h.Git("commit", "-qm", "A port")
	c := connect(t, h, sessions)
	const said = "web: listen on 3000 inside; outside it is http://web.site.localhost:"
	for _, got := range []answer{c.must("sandbox-create", args{"name": "site"}), c.must("sandbox-open", args{"name": "site"}), c.must("sandbox-list", args{})} {
		if !strings.Contains(got.text, said) {
			t.Errorf("%s", got.text)
		}
	}
	if got := c.must("sandbox-exec", args{"command": "echo $PORT_WEB", "message": "Look"}); got.str("stdout") != "3000\n" {
		t.Errorf("%q", got.data)
	}
}
