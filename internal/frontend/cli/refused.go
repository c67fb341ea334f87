package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// refusedMost is how many refused destinations one note names.
const refusedMost = 5

// noteRefused says on one line what the network refused and how to open it.
func (c *console) noteRefused(name string, refused []engine.Refusal) {
	var destinations, rules []string
	unclear := false // a refusal that no rule ends
	for _, one := range refused {
		if !slices.Contains(destinations, one.Destination) {
			destinations = append(destinations, one.Destination)
		}
		if rule := cmp.Or(one.Preset, one.Rule); rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		} else if rule == "" {
			unclear = true
		}
	}
	if len(destinations) == 0 {
		return
	}
	text := "the network refused " + strings.Join(destinations[:min(len(destinations), refusedMost)], ", ")
	if more := len(destinations) - refusedMost; more > 0 {
		text += fmt.Sprintf(" and %d more (litterbox network %s)", more, name)
	} else if unclear {
		text += " (litterbox network " + name + " says why)"
	}
	if len(rules) > 0 {
		text += "; to open it: litterbox allow " + name + " " + strings.Join(rules[:min(len(rules), refusedMost)], " ")
	}
	c.note("%s", clean(text))
}

// refusalDocument is a refused destination in exec --json.
type refusalDocument struct {
	Destination string `json:"destination"`
	Why         string `json:"why"`
	Rule        string `json:"rule"` // that opens it; empty when none does
}

func refusalDocuments(refused []engine.Refusal) []refusalDocument {
	all := []refusalDocument{}
	for _, one := range refused {
		all = append(all, refusalDocument{one.Destination, one.Why, cmp.Or(one.Preset, one.Rule)})
	}
	return all
}
