package layer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Names that git refuses for a submodule, and names that could be read in two ways.
func TestModuleNames(t *testing.T) {
	for name, good := range map[string]bool{
		"lib": true, "vendor/lib": true, "a.b": true, "ünïcode": true, "with space": true,
		"": false, "..": false, "../x": false, "a/../b": false, "/a": false, "a/": false, "a//b": false, ".": false,
		`a\..\b`: false, "-x": false, "a\nb": false, "a\x00b": false, ".git": false, "a/.GIT/hooks": false,
		"git~1": false, "x.lock": false, "c:d": false, "\u009bx": false, ".g\u200cit": false,
	} {
		if why := badModuleName(name); (why == "") != good {
			t.Errorf("%q: %q", name, why)
		}
	}
	for _, c := range []struct {
		names []string
		bad   bool
	}{
		{[]string{"a", "b", "ab", "a-b"}, false},
		{[]string{"a", "a/hooks"}, true},
		{[]string{"A/x/hooks", "a"}, true},
	} {
		if name, bad := nestedName(c.names); bad != c.bad {
			t.Errorf("%q: %q", c.names, name)
		}
	}
}

// As git-submodule(1) resolves them, and without what opens the door.
func TestModuleURLs(t *testing.T) {
	for _, c := range [][3]string{
		{"https://host/a/b.git", "../c.git", "https://host/a/c.git"},
		{"https://host/a/b.git", "../../c", "https://host/c"},
		{"https://host/a", "./c", "https://host/a/c"},
		{"git@host:a/b.git", "../c.git", "git@host:a/c.git"},
		{"git@host:b", "../c", "git@host:c"},
		{"/srv/git/b", "../c", "/srv/git/c"},
		{"", "../c", "../c"},
		{"x", "https://user:secret@host/c", "https://host/c"},
		{"x", "https://token@host/c", "https://host/c"},
		{"x", "ssh://git@host/c", "ssh://git@host/c"},
		{"x", "ssh://git:secret@host/c", "ssh://host/c"},
		{"x", "--upload-pack=touch x", ""},
		{"x", "a\nb", ""},
		{"x", "https://%zz@host/", ""},
	} {
		if diff := cmp.Diff(c[2], resolveURL(c[1], c[0])); diff != "" {
			t.Errorf("%q from %q: %s", c[1], c[0], diff)
		}
	}
}

// .gitmodules is content: nothing in it is followed.
func TestGitmodules(t *testing.T) {
	got, err := parseGitmodules(t.Context(), []byte("[include]\n\tpath = /etc/passwd\n[submodule \"a.b\"]\n\tpath = x/\n\turl = u\n\tupdate = !touch\n[submodule \"n\"]\n\turl = v\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]gitmodule{{"a.b", "x", "u"}}, got, cmp.AllowUnexported(gitmodule{})); diff != "" {
		t.Error(diff)
	}
	if _, err := parseGitmodules(t.Context(), []byte("[submodule \"a")); err == nil {
		t.Error("half a section was read")
	}
}
