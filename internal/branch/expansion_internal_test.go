package branch

import (
	"fmt"
	"strings"
	"testing"
)

// forest is trees by a made-up id.
type forest map[string]string

// add makes a tree of lines "name" or "name=tree" and gives its id.
func (f forest) add(lines ...string) string {
	var content strings.Builder
	for _, line := range lines {
		name, below, isTree := strings.Cut(line, "=")
		mode, oid := "100644", strings.Repeat("f", 20)
		if isTree {
			mode, oid = "40000", below
		}
		content.WriteString(mode + " " + name + "\x00" + oid)
	}
	id := fmt.Sprintf("%020d", len(f)+1)
	f[id] = content.String()
	return id
}

func (f forest) expansion(most int, reads *int) *expansion {
	return &expansion{
		read: func(oid string) ([]byte, error) {
			*reads++
			return []byte(f[oid]), nil
		},
		hash: 20, most: most, pairs: map[[2]string]int{}, whole: map[string]extent{},
	}
}

func TestExpansionCountsWhatGitWouldHold(t *testing.T) {
	t.Parallel()
	f := forest{}
	nothing := f.add()
	small := f.add("a", "b")
	before := f.add("dir="+small, "file", "gone="+small)
	after := f.add("dir="+f.add("a", "b", "c"), "file", "kind", "new="+small)
	// Ten levels of ten entries: of files, and of nothing at all.
	bomb, hollow := f.add("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), nothing
	for range 9 {
		var files, none []string
		for n := range 10 {
			files, none = append(files, fmt.Sprint(n, "=", bomb)), append(none, fmt.Sprint(n, "=", hollow))
		}
		bomb, hollow = f.add(files...), f.add(none...)
	}
	deep := small
	for range maxTreeHeight + 1 {
		deep = f.add("d=" + deep)
	}
	for _, test := range []struct {
		name     string
		from, to string
		want     int
		err      string
	}{
		{"nothing", before, before, 0, ""},
		{"a change", before, after, 2 + 1 + 3 + 3, ""}, // dir/c, kind, new, gone
		{"a new tree", "", before, 7, ""},
		{"a tree that goes", before, nothing, 7, ""},
		{"trees that hold each other", before, bomb, 0, "more than 1000000 paths"},
		{"the same where it goes", bomb, before, 0, "more than 1000000 paths"},
		{"the same without a file", before, hollow, 0, "more than 1000000 paths"},
		{"levels", before, deep, 0, "levels deep"},
	} {
		reads := 0
		got, err := f.expansion(1_000_000, &reads).changed(test.from, test.to, 0)
		if test.err == "" && (err != nil || got != test.want) || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %d, %v; want %d, %q", test.name, got, err, test.want, test.err)
		}
		if reads > maxTreeHeight+10 {
			t.Errorf("%s: %d trees were read", test.name, reads)
		}
	}
}

// However already counted trees are stacked, none may be too deep.
func TestExpansionKnowsHeights(t *testing.T) {
	t.Parallel()
	f := forest{}
	reads := 0
	x := f.expansion(1_000_000, &reads)
	tree := f.add("a")
	var err error
	for range maxTreeHeight + 1 {
		if err != nil {
			break
		}
		tree = f.add("d=" + tree)
		_, err = x.All(tree, 0)
	}
	if err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("%v", err)
	}
}
