package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// foreign are words that make a sentence read as translated. A sentence that needs
// one of them is turned around: subject first, the common word.
var foreign = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|such a one|without your word|when you say so|what is no)\b`)

// stiff are words that have a common one. What was released, and decisions, stay as
// they were written.
var stiff = regexp.MustCompile(`(?i)\b(anew|shall|mends|mended|looked into|for so long)\b`)

// TestPagesReadAsWritten holds the pages that people read to plain English.
func TestPagesReadAsWritten(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 40 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	for _, path := range pages {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range strings.Split(string(content), "\n") {
			if word := foreign.FindString(line); word != "" {
				t.Errorf("%s:%d: %q reads as translated", path, number+1, word)
			}
			if word := stiff.FindString(line); word != "" && filepath.Base(path) != "CHANGELOG.md" && !strings.Contains(filepath.ToSlash(path), "/adr/") {
				t.Errorf("%s:%d: %q has a common word", path, number+1, word)
			}
		}
	}
}

// TestPredicatesReport holds the comments of exported predicates to one phrase.
func TestPredicatesReport(t *testing.T) {
	tells := regexp.MustCompile(`(?m)^// \w+ (tells|says) whether`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		content, err := os.ReadFile(path)
		if found := tells.FindString(string(content)); found != "" {
			t.Errorf("%s: %q; a predicate reports whether", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// translated are phrases of messages and comments for which there is a plain one.
var translated = regexp.MustCompile(`(?i)\b(somebody|whoever|such a one|without your word|those there are|none of the hosts|nobody (can|else|who|is|has))\b|is no (regular|name of|valid|directory|list of|string)\b`)

// TestMessagesReadAsWritten holds product code to plain English.
func TestMessagesReadAsWritten(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		for number, line := range strings.Split(string(content), "\n") {
			if phrase := translated.FindString(line); phrase != "" {
				t.Errorf("%s:%d: %q reads as translated", path, number+1, phrase)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
