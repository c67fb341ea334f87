package threat

import (
	"fmt"
	"slices"
	"strings"
)

// The marks around the table in docs/security.md.
const (
	Begin = "<!-- Made by: go test ./internal/threat -update -->\n"
	End   = "<!-- The table of attacks ends here. -->\n"
)

// Page returns the table of attacks by class, for docs/security.md.
func Page() string {
	var b strings.Builder
	b.WriteString(Begin)
	for _, text := range Classes() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| attack | an escape would show | defence | tried by | also on |\n|---|---|---|---|---|\n", text.Class, text.About)
		for _, a := range All() {
			if a.Class == text.Class {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.Name, a.Escape, code(a.Defence), tried(a.Tried), places(a.Places))
			}
		}
		var links []string
		for _, l := range text.Links {
			links = append(links, fmt.Sprintf("[%s](%s) (%s)", l.Name, l.URL, l.What))
		}
		fmt.Fprintf(&b, "\nReferences: %s.\n", strings.Join(links, "; "))
	}
	b.WriteString("\n" + End)
	return b.String()
}

func code(all []string) string { return "`" + strings.Join(all, "`, `") + "`" }

// tried words the suites: it names an attack's own test.
func tried(all []string) string {
	words := slices.Clone(all)
	for i, one := range words {
		if dir, test, ok := strings.Cut(one, ": "); ok {
			words[i] = "`" + dir + "` (" + test + ")"
		} else if one != Redteam {
			words[i] = "`" + one + "`"
		}
	}
	return strings.Join(words, ", ")
}

func places(all []Place) string {
	var words []string
	for _, place := range all {
		words = append(words, string(place))
	}
	return strings.Join(words, ", ")
}
