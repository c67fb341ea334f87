package config_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

var update = flag.Bool("update", false, "rewrite the reference page")

func TestDocument(t *testing.T) {
	t.Parallel()
	const page = "../../docs/reference/configuration.md"
	got := config.Document()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the schema says; rewrite it with -update (- want, + got):\n%s", page, diff)
	}
}

func TestDocumentNamesEveryKey(t *testing.T) {
	t.Parallel()
	page := config.Document()
	for _, key := range config.Keys() {
		if !strings.Contains(page, "\n### `"+key.Name+"`\n\n"+key.Meaning+"\n") {
			t.Errorf("%s is missing", key.Name)
		}
	}
}

// The table shows what an untrusted repository may set, and why.
func TestDocumentSaysWhyUntrustedCounts(t *testing.T) {
	t.Parallel()
	page := config.Document()
	for _, key := range config.Keys() {
		counts := !key.Own && (!key.NeedsTrust || key.TrustFor != "")
		if counts != (key.Untrusted != "") {
			t.Errorf("%s: it counts from an untrusted repository: %t, because %q", key.Name, counts, key.Untrusted)
		}
		_, row, _ := strings.Cut(page, "| [`"+key.Name+"`]")
		if row, _, _ = strings.Cut(row, "\n"); !strings.Contains(row, key.Untrusted) {
			t.Errorf("%s: the table says %s", key.Name, row)
		}
	}
}

// An untrusted repository weakens nothing that the human's own file keeps; the
// control is a trusted one.
func TestUntrustedRepositoryKeepsRetention(t *testing.T) {
	t.Parallel()
	user := parse(t, "user", "durability = 'strict'\nlimits.idle-pause = '10m'\n[retention]\nmax-age = '30d'\nkeep-last = 9\nstates = ['stopped']\n")
	repo := parse(t, "repo", "durability = 'normal'\nlimits.idle-pause = 'none'\n[retention]\nmax-age = '1s'\nmax-disk = '1B'\nkeep-last = 0\nstates = ['stopped', 'failed', 'orphaned']\n")
	got, withheld := config.Merge(user, repo, false)
	if diff := cmp.Diff(user.Retention, got.Retention); diff != "" || got.Durability != config.Strict || got.IdlePause != user.IdlePause {
		t.Errorf("untrusted: durability %s, pause %v, retention (- want, + got):\n%s", got.Durability, got.IdlePause, diff)
	}
	if len(withheld) != 5 {
		t.Errorf("withheld: %q", withheld)
	}
	got, _ = config.Merge(user, repo, true)
	if diff := cmp.Diff(repo.Retention, got.Retention); diff != "" || got.Durability != config.Normal {
		t.Errorf("trusted: durability %s, retention (- want, + got):\n%s", got.Durability, diff)
	}
}

// The page's examples must be accepted.
func TestDocumentExamples(t *testing.T) {
	t.Parallel()
	page := config.Document()
	_, example, _ := strings.Cut(page, "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	if c := parse(t, "example", example); len(c.Set) != 4 {
		t.Errorf("the example sets %q", c.Set)
	}
	_, rules, _ := strings.Cut(page, "## Network rules")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(rules, -1)
	if len(rows) < 10 {
		t.Fatalf("the page shows %d rules", len(rows))
	}
	for _, row := range rows {
		if rule, err := egress.ParseRule(row[1]); err != nil || rule.String() != row[1] {
			t.Errorf("the rule %q reads as %q, %v", row[1], rule.String(), err)
		}
	}
}

// Names that the page calls planned must be refused as such.
func TestDocumentPlanned(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(config.Document(), "## Not yet")
	rows := regexp.MustCompile("(?m)^- `([^`]+)`$").FindAllStringSubmatch(list, -1)
	if len(rows) == 0 {
		t.Fatal("the page names nothing as planned")
	}
	for _, row := range rows {
		_, err := config.Parse("f", []byte(row[1]+" = 1"))
		if err == nil || !strings.Contains(err.Error(), "is not supported by this version yet") {
			t.Errorf("%s: %v", row[1], err)
		}
	}
}
