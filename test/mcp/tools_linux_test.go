package mcp_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Every tool, from create to milestone, over everything that it is served over.
func TestTools(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, h *program.Host, c *client) {
		if c.handle == "" {
			a := c.call("sandbox-read", args{"path": "README"})
			if a.kind != "conflict" && a.kind != "invalid" || !strings.Contains(a.next, "sandbox-create") {
				t.Errorf("without a sandbox: %s", a.text)
			}
		}
		made := c.must("sandbox-create", args{"name": "Fix: the Login!"})
		if made.str("name") != "fix-the-login" || made.str("branch") != "fix-the-login" || made.str("path") != h.Repo || made.str("network") != "none" {
			t.Errorf("%+v", made.data)
		}
		c.fails("already_exists", "sandbox-create", args{"name": "fix the login"}, "choose another name", "sandbox-open")

		first := c.must("sandbox-exec", args{"command": "echo out; echo err >&2; echo x >new; rm README; [[ 1 -eq 1 ]]", "message": "Try it"})
		if first.str("stdout") != "out\n" || first.str("stderr") != "err\n" || first.num("exit_code") != 0 || first.num("changed") != 2 ||
			strings.Join(first.strs("files"), " ") != "README new" || first.str("commit") != h.Git("rev-parse", "fix-the-login") {
			t.Errorf("%+v", first.data)
		}
		body := h.Git("log", "-1", "--format=%B", "fix-the-login")
		if !strings.HasPrefix(body, "Try it\n\n$ echo out;") || !strings.Contains(body, "\nLitterbox-Exit-Code: 0\nLitterbox-Audit: ") {
			t.Errorf("commit message %q", body)
		}
		failed := c.must("sandbox-exec", args{"command": "exit 3", "message": "Fail"})
		if failed.num("exit_code") != 3 || failed.str("commit") == "" || failed.num("changed") != 0 {
			t.Errorf("%+v", failed.data)
		}
		if where := c.must("sandbox-exec", args{"command": "pwd", "message": "Where", "dir": "src"}); where.str("stdout") != h.Repo+"/src\n" {
			t.Errorf("dir: %+v", where.data)
		}

		c.must("sandbox-write", args{"path": "lib/a.go", "content": "package lib\n\nvar A = 1\n", "message": "Add A"})
		edited := c.must("sandbox-edit", args{"path": "lib/a.go", "old": "A = 1", "new": "A = 2", "message": "Two"})
		if strings.Join(edited.strs("lines"), " ") != "3" {
			t.Errorf("%+v", edited.data)
		}
		if read := c.must("sandbox-read", args{"path": "lib/a.go"}); read.text != "package lib\n\nvar A = 2\n" || read.str("content") != read.text {
			t.Errorf("%+v", read)
		}
		if files := c.must("sandbox-files", args{"glob": "**/*.{go,txt}"}); strings.Join(files.strs("files"), " ") != "lib/a.go src/main.txt" {
			t.Errorf("%+v", files.data)
		}
		found := c.must("sandbox-search", args{"pattern": `var \w = 2`})
		if !strings.Contains(found.text, "lib/a.go:3: var A = 2") {
			t.Errorf("%+v", found)
		}
		diff := c.must("sandbox-diff", args{})
		if diff.num("total") != 3 || !strings.Contains(diff.str("patch"), "+var A = 2") || !strings.Contains(diff.text, "README: +0 -1") {
			t.Errorf("%+v", diff)
		}
		if one := c.must("sandbox-diff", args{"path": h.Repo + "/lib"}); one.num("total") != 1 {
			t.Errorf("one path: %+v", one.data)
		}
		steps := c.must("sandbox-log", args{"limit": 2})
		if steps.num("total") != 5 || len(steps.strs("steps")) != 2 || !strings.Contains(steps.text, "Two") {
			t.Errorf("%+v", steps.data)
		}
		c.fails("not_found", "sandbox-service", args{"action": "start", "service": "web"}, "web")
		if none := c.must("sandbox-service", args{"action": "status"}); !strings.Contains(none.text, "no services are configured") {
			t.Errorf("%s", none.text)
		}
		// A service that the human adds to the configuration can be started at once.
		h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container.services.web]\ncommand = [\"sh\", \"-c\", \"seq 1 300; printf '  \\\\033[31mred\\\\n'; exec sleep 600\"]\n")
		if started := c.must("sandbox-service", args{"action": "start", "service": "web"}); started.text != "web: running\n" {
			t.Errorf("%q", started.text)
		}
		c.logsOf("web")
		if stopped := c.must("sandbox-service", args{"action": "stop", "service": "web"}); stopped.text != "web: stopped\n" {
			t.Errorf("%q", stopped.text)
		}
		mile := c.must("sandbox-milestone", args{"message": "Do it all\n\nIn detail."})
		if got := h.Git("log", "--format=%H %s", "main..fix-the-login"); got != mile.str("commit")+" Do it all" {
			t.Errorf("after the milestone: %q", got)
		}
		list := c.must("sandbox-list", args{})
		if !strings.Contains(list.text, "fix-the-login: running") || !strings.Contains(list.text, "this session works there") {
			t.Errorf("%s", list.text)
		}
		// Another sandbox, and back: calls may name either, and the two can be
		// compared.
		c.must("sandbox-create", args{"name": "other", "base": "main"})
		c.do("echo other >lone")
		if back := c.must("sandbox-open", args{"name": "fix-the-login"}); !strings.Contains(back.text, "name other as sandbox to reach it") || !strings.Contains(back.text, "Do it all") {
			t.Errorf("%s", back.text)
		}
		if got := c.must("sandbox-read", args{"path": "lone", "sandbox": "other"}).text; got != "other\n" {
			t.Errorf("%q", got)
		}
		c.fails("not_found", "sandbox-read", args{"path": "lone"})
		c.fails("not_found", "sandbox-read", args{"path": "lone", "sandbox": "nobody"}, "sandbox-open it first")
		if got := c.must("sandbox-diff", args{"with": "other", "path": "lone"}); !strings.Contains(got.text, "lone: +0 -1") {
			t.Errorf("%s", got.text)
		}
		if got := c.must("sandbox-diff", args{"since": "milestone"}); got.text != "nothing changed" {
			t.Errorf("%s", got.text)
		}
		c.fails("not_found", "sandbox-open", args{"name": "nobody"}, "sandbox-list")

		// Ways can be tried: a snapshot, back to it and to a step, and a fork.
		kept := c.must("sandbox-snapshot", args{"label": "good"})
		if !strings.HasPrefix(kept.text, "snapshot s1 of fix-the-login, after step ") {
			t.Errorf("%q", kept.text)
		}
		c.do("echo worse >lone; echo hidden >.git/info/exclude; echo 1 >hidden; sleep 600 >/dev/null 2>&1 &")
		again := c.must("sandbox-rewind", args{"to": "good"})
		if again.str("before") != "s2" || !again.is("exact") || !strings.Contains(again.text, "to undo: sandbox-rewind to s2\n") {
			t.Errorf("%+v", again)
		}
		if gone := c.must("sandbox-exec", args{"command": "ls lone hidden 2>&1 || true", "message": "Look"}); strings.Contains(gone.str("stdout"), "lone\n") {
			t.Errorf("after the rewind: %q", gone.str("stdout"))
		}
		early := c.must("sandbox-rewind", args{"to": 2})
		if early.is("exact") || early.str("before") == "" {
			t.Errorf("%+v", early)
		}
		c.must("sandbox-rewind", args{"to": "good"})
		forked := c.must("sandbox-fork", args{"name": "Other way", "at": "good"})
		if forked.str("name") != "other-way" || !strings.Contains(forked.text, "calls still go to fix-the-login") {
			t.Errorf("%+v", forked)
		}
		c.fails("already_exists", "sandbox-fork", args{"name": "other-way"})
		c.fails("not_found", "sandbox-rewind", args{"to": "s99"})
		c.must("sandbox-open", args{"name": "other-way"})

		// The human's later commits come in, with conflicts on request.
		h.Put(filepath.Join(h.Repo, "of-the-human"), "new\n")
		h.Git("add", "of-the-human")
		h.Git("commit", "-qm", "Of the human")
		newer := c.must("sandbox-update", args{})
		if !strings.Contains(newer.text, "has 1 more commit") || c.must("sandbox-read", args{"path": "of-the-human"}).text != "new\n" {
			t.Errorf("%+v", newer)
		}
		if again := c.must("sandbox-update", args{}); !strings.Contains(again.text, "already has all of") {
			t.Errorf("%s", again.text)
		}
		c.do("echo inside >of-the-human")
		h.Put(filepath.Join(h.Repo, "of-the-human"), "outside\n")
		h.Git("commit", "-qam", "Of the human again")
		c.fails("conflict", "sandbox-update", args{}, "with markers")
		marked := c.must("sandbox-update", args{"markers": true})
		if !strings.Contains(marked.text, "of-the-human") || !strings.Contains(c.must("sandbox-read", args{"path": "of-the-human"}).text, "<<<<<<<") {
			t.Errorf("%+v", marked)
		}
		c.must("sandbox-open", args{"name": "fix-the-login"})

		// A human sees who works there, and merges.
		if status := h.Must("status", "fix-the-login"); !strings.Contains(status, "test-agent 1.2.3") {
			t.Errorf("%s", status)
		}
		if got := h.Litterbox("merge", "fix-the-login", "--yes"); got.Code != 5 || !strings.Contains(got.Stderr, "the agent session of test-agent 1.2.3") {
			t.Errorf("%+v", got)
		}
		if got := h.Litterbox("merge", "fix-the-login", "--yes", "--stop"); got.Code != 0 {
			t.Errorf("%+v", got)
		}
		c.fails("not_found", "sandbox-read", args{"path": "README"}, `"fix-the-login" was merged into main and deleted by `)
		audited(t, h)
	})
}

// audited checks what the audit log says about a session.
func audited(t *testing.T, h *program.Host) {
	t.Helper()
	log := h.Must("audit", "--json")
	for _, want := range []string{
		`"via": "mcp"`, `"client": "test-agent"`, `"version": "1.2.3"`, `"action": "sandbox-create"`, `"action": "sandbox-read"`,
		`"content": "[23 bytes, sha256 `, `"outcome": "already_exists"`, `"command": "exit 3"`, `"exit_code": 3`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	if strings.Contains(log, "var A") {
		t.Error("the content of a file is in the audit log")
	}
	if got := h.Litterbox("audit", "verify"); got.Code != 0 || !strings.Contains(got.Stdout, "whole: ") {
		t.Errorf("%+v", got)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	for _, w := range []struct {
		tool string
		args any
		word string
	}{
		{"sandbox-exec", args{"command": "true"}, "message is missing"},
		{"sandbox-exec", args{"command": "true", "message": " \n"}, "message is empty"},
		{"sandbox-exec", args{"command": "", "message": "x"}, "command is empty"},
		{"sandbox-exec", args{"message": "x"}, "command is missing"},
		{"sandbox-exec", args{"command": "true", "message": "x", "Command": "y"}, `no argument "Command"`},
		{"sandbox-exec", args{"command": "true", "message": "x", "timeout": "soon"}, "timeout is a string and must be of type number"},
		{"sandbox-exec", args{"command": "true", "message": "x", "timeout": -1}, "timeout is -1"},
		{"sandbox-exec", args{"command": "true", "message": "x", "limit": 1 << 40}, "limit"},
		{"sandbox-exec", args{"command": []string{"ls"}, "message": "x"}, "command is a array"},
		{"sandbox-exec", args{"command": "echo \x00", "message": "x"}, "NUL"},
		{"sandbox-wait", args{"command": "x"}, "command is a string"},
		{"sandbox-write", args{"path": "a", "content": "x"}, "message is missing"},
		{"sandbox-write", args{"path": "a", "content": "x", "message": ""}, "message is empty"},
		{"sandbox-edit", args{"path": "README", "old": "hello", "new": "x", "message": "\t"}, "message is empty"},
		{"sandbox-edit", args{"path": "README", "old": "", "new": "x", "message": "x"}, "old is empty"},
		{"sandbox-edit", args{"path": "README", "old": "x", "new": "x", "message": "x"}, "the same"},
		{"sandbox-milestone", args{}, "message is missing"},
		{"sandbox-milestone", args{"message": ""}, "message is empty"},
		{"sandbox-create", args{"name": "…"}, "no letter or digit"},
		{"sandbox-create", args{"name": ""}, "name is empty"},
		{"sandbox-read", args{"path": ""}, "path is empty"},
		{"sandbox-read", args{"path": "README", "offset": -1}, "negative"},
		{"sandbox-read", args{"path": "README", "offset": 1, "line": 2}, "exclude"},
		{"sandbox-search", args{"pattern": "("}, "missing closing"},
		{"sandbox-search", args{"pattern": ""}, "pattern is empty"},
		{"sandbox-service", args{"action": "explode"}, "must be start"},
		{"sandbox-service", args{"action": "logs"}, "name the service"},
		{"sandbox-service", args{"action": "logs", "service": "web", "lines": 100000}, "must be 1 to 500"},
		{"sandbox-service", args{"action": "logs", "service": "web", "from": -1}, "must be the next of a page"},
		{"sandbox-fork", args{"name": ""}, "name is empty"},
		{"sandbox-rewind", args{}, "to is missing"},
		{"sandbox-rewind", args{"to": ""}, "to is empty"},
		{"sandbox-snapshot", args{"label": "12"}, "not a number"},
		{"sandbox-list", args{"all": true}, `no argument "all"`},
		{"sandbox-list", []int{1}, "not a JSON object"},
		{"sandbox-list", "text", "not a JSON object"},
	} {
		c.fails("invalid", w.tool, w.args, w.word)
	}
	// Deviations of some clients and models are understood.
	if got := c.must("sandbox-exec", args{"cmd": "pwd", "description": "Where", "cwd": "/tmp", "timeout": "30"}); got.str("stdout") != "/tmp\n" {
		t.Errorf("%+v", got.data)
	}
	c.must("sandbox-write", args{"file_path": "a", "contents": "x", "commit_message": "Write"})
	c.must("sandbox-read", args{"file_path": "a", "limit": 5.0})
	c.must("sandbox-files", args{"path": nil, "glob": nil})
	c.must("sandbox-list", nil)
	c.fails("not_found", "apply_patch", args{"input": "*** Begin Patch"}, "git apply --recount")
	c.fails("not_found", "sandbox-delete", args{"name": "fix"}, "the human")
	if _, err := c.raw(deadline(t), "sandbox-explode", args{"name": "fix"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a tool that there is not: %v", err)
	}
}

func TestEditIsExact(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	c.do(`printf 'one\ntwo\none\n' >twice; printf 'a\r\nb\r\n' >dos; printf 'x\377y' >latin; mkdir .hid; echo a >.hid/f; ln -s .hid/f innocent; chmod 751 twice`)
	edit := func(path, old, new string) args {
		return args{"path": path, "old": old, "new": new, "message": "Edit"}
	}
	c.fails("invalid", "sandbox-edit", edit("twice", "one", "1"), "in lines 1, 3")
	c.fails("not_found", "sandbox-edit", edit("twice", "One", "1"), "white space included")
	c.fails("not_found", "sandbox-edit", edit("none", "a", "1"))
	c.fails("denied", "sandbox-edit", edit(".git/config", "core", "x"), "sandbox-exec")
	// Hidden files are edited as they are written, and not shown.
	c.fails("not_found", "sandbox-edit", edit(".hid/f", "b", "1"), "hidden and cannot be shown")
	c.must("sandbox-edit", edit(".hid/f", "a", "c"))
	c.must("sandbox-edit", edit("twice", "two\none", "2\n$1\\n"))
	// Lines keep their CR LF, in whatever way old and new are written.
	c.must("sandbox-edit", edit("dos", "a\nb", "1\n2"))
	c.must("sandbox-edit", edit("dos", "2", "3\n4"))
	// A file that is not UTF-8 is edited by ASCII texts, or by line.
	c.must("sandbox-edit", edit("latin", "y", "z"))
	c.fails("unsupported", "sandbox-edit", edit("latin", "z", "é"), "iconv")
	c.fails("not_found", "sandbox-edit", edit("latin", "x\ufffd", "q"), "name the line")
	if got := c.do(`od -An -c twice dos latin | tr -d ' \n'; stat -c %a twice; cat .hid/f`); got != `one\n2\n$1\n\n1\r\n3\r\n4\r\nx377z751`+"\nc" {
		t.Errorf("%q", got)
	}
	c.must("sandbox-edit", args{"path": "latin", "line": 1, "new": "w", "message": "By line"})
	if got := c.do(`cat latin`); got != "w" {
		t.Errorf("%q", got)
	}
	// Several at once, all or none.
	c.do(`printf 'alpha\n\tbeta(gamma)\ndelta\nalpha\n' >several`)
	c.fails("not_found", "sandbox-edit", args{"path": "several", "message": "Edit", "edits": []args{{"old": "delta", "new": "x"}, {"old": "none", "new": "x"}}}, "edit 2 of 2")
	c.fails("not_found", "sandbox-edit", edit("several", "  beta( gamma )", "x"), "line 2 differs in white space only", "\tbeta(gamma)")
	c.fails("not_found", "sandbox-edit", edit("several", "\tbeta(gama)", "x"), "line 2 comes nearest")
	done := c.must("sandbox-edit", args{"path": "several", "message": "Edit", "edits": []args{
		{"old_string": "alpha", "new_string": "a", "replace_all": true}, {"old": "delta", "new": "d"}, {"line": 2, "old": "beta", "new": "b"},
	}})
	if got := c.do(`cat several`); got != "a\n\tb(gamma)\nd\na" || done.num("count") != 4 || !strings.Contains(done.text, "replaced 4 times in several, at lines 1, 4, 3, 2,") {
		t.Errorf("%q %s", got, done.text)
	}
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	var large strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&large, "line %d é\n", i+1)
	}
	h.Put(h.Repo+"/large.txt", large.String())
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 300))); err != nil {
		t.Fatal(err)
	}
	h.Put(h.Repo+"/picture.png", picture.String())
	h.Put(h.Repo+"/data.bin", "\x00\x01\x02\xff")
	h.Put(h.Repo+"/latin.txt", "na\xefve\n")
	h.Put(h.Repo+"/long.txt", strings.Repeat("é", 40000))
	h.Put(h.Repo+"/escape.txt", "\x1b[31mred\x9b\n")
	h.Put(h.Repo+"/empty", "")
	h.Git("add", ".")
	h.Git("commit", "-qm", "files")
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	for _, path := range []string{"large.txt", "long.txt"} {
		var whole strings.Builder
		pages := 0
		for offset := 0; ; pages++ {
			page := c.must("sandbox-read", args{"path": path, "offset": offset})
			whole.WriteString(page.str("content"))
			if len(page.str("content")) > 10_000 {
				t.Errorf("%s: a page of %d bytes", path, len(page.str("content")))
			}
			if offset = page.num("next_offset"); offset == 0 {
				break
			}
		}
		want := large.String()
		if path == "long.txt" {
			want = strings.Repeat("é", 40000)
		}
		if whole.String() != want || pages < 6 {
			t.Errorf("%s: %d bytes of %d in %d pages", path, whole.Len(), len(want), pages)
		}
	}
	if got := c.must("sandbox-read", args{"path": "large.txt", "line": 4999}).text; got != "line 4999 é\nline 5000 é\n" {
		t.Errorf("%q", got)
	}
	if got := c.must("sandbox-read", args{"path": "large.txt", "limit": 200_000}); got.num("next_offset") != 0 {
		t.Errorf("all at once: %d", got.num("next_offset"))
	}
	pic := c.must("sandbox-read", args{"path": "picture.png"})
	if shown, ok := pic.content[1].(*sdk.ImageContent); !ok || !bytes.Equal(shown.Data, picture.Bytes()) || shown.MIMEType != "image/png" || !pic.is("binary") {
		t.Errorf("%+v", pic)
	}
	data := c.must("sandbox-read", args{"path": "data.bin"})
	if shown, ok := data.content[1].(*sdk.EmbeddedResource); !ok || !bytes.Equal(shown.Resource.Blob, []byte("\x00\x01\x02\xff")) || shown.Resource.MIMEType != "application/octet-stream" {
		t.Errorf("%+v", data)
	}
	if latin := c.must("sandbox-read", args{"path": "latin.txt"}); !strings.Contains(latin.text, "na\ufffdve") || !strings.Contains(latin.text, "not UTF-8") {
		t.Errorf("%q", latin.text)
	}
	if empty := c.must("sandbox-read", args{"path": "empty"}); !strings.Contains(empty.text, "0 bytes") || empty.str("content") != "" {
		t.Errorf("%q", empty.text)
	}
	if raw := c.must("sandbox-read", args{"path": "escape.txt"}); !strings.Contains(raw.str("content"), "\x1b[31mred") {
		t.Errorf("%q", raw.text)
	}
}
