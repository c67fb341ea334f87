package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestReference(t *testing.T) {
	for name, got := range map[string]string{"commands.md": cli.Reference(), "events.md": cli.EventsReference(), "watch.md": cli.WatchReference()} {
		t.Run(name, func(t *testing.T) { comparePage(t, "../../../docs/reference/"+name, got) })
	}
}

func comparePage(t *testing.T, page, got string) {
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
		t.Errorf("%s is not what the commands say; rewrite it with -update (-want +got):\n%s", page, diff)
	}
}

// Every command has its page and its link, and no link leads nowhere.
func TestReferenceIsWhole(t *testing.T) {
	page := cli.Reference()
	for _, name := range cli.Commands() {
		if name == "" || name == "exit-codes" {
			continue
		}
		help := lb(t, nil, "", name, "--help").Stdout
		if !strings.Contains(page, "\n### litterbox "+name+"\n") || !strings.Contains(page, "```text\n"+help+"```\n") {
			t.Errorf("%s has no page", name)
		}
		if !strings.Contains(page, "](#litterbox-"+name+")") {
			t.Errorf("no link leads to %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#litterbox-([\w-]+)\)`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(cli.Commands(), link[1]) {
			t.Errorf("a link leads to %s", link[1])
		}
	}
}

// The table of origins calls something present only if it runs, planned only
// if it does not.
func TestOriginsAreHonest(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `[^`]+` \\| `litterbox ([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(cli.Reference(), -1)
	if len(rows) < 40 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	planned := 0
	for _, row := range rows {
		words := strings.Fields(row[1])
		there := slices.Contains(cli.Commands(), words[0]) || words[0] == "-C"
		if help := lb(t, nil, "", words[0], "--help").Stdout; len(words) > 1 && strings.Contains(help, "\nCommands:\n") && strings.ToLower(words[1]) == words[1] {
			there = strings.Contains(help, "\n  "+words[1]+" ") // a command below
		}
		if says := row[2] != "planned"; says != there {
			t.Errorf("%q is %s; it is there: %t", row[1], row[2], there)
		}
		command := words[:1]
		help := lb(t, nil, "", words[0], "--help").Stdout
		if len(words) > 1 && strings.Contains(help, "\n  "+words[1]+" ") {
			command = words[:2] // a command below
			help = lb(t, nil, "", command[0], command[1], "--help").Stdout
		}
		for _, word := range words[len(command):] {
			shown := strings.Contains(help, " "+word+" ") || strings.Contains(help, " "+word+"\n")
			if strings.HasPrefix(word, "--") && len(word) > 2 && there && shown != (row[2] == "yes") {
				t.Errorf("%q is %s; its help shows %s: %t", row[1], row[2], word, shown)
			}
		}
		if !there {
			planned++
		}
	}
	t.Logf("%d of %d are planned", planned, len(rows))
}
