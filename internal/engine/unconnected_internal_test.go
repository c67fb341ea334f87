package engine

import (
	"errors"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

func TestConnects(t *testing.T) {
	rule, err := egress.ParseRule("example.com")
	if err != nil {
		t.Fatal(err)
	}
	without, with := fake.New(fake.NewMachine(), fake.Options{Minimal: true}), fake.New(fake.NewMachine(), fake.Options{})
	for name, c := range map[string]struct {
		driver  driver.Driver
		policy  egress.Policy
		refused bool
	}{
		"nothing allowed":             {without, egress.Policy{}, false},
		"a rule":                      {without, egress.Policy{Allow: []egress.Rule{rule}}, true},
		"everything allowed":          {without, egress.Policy{Default: egress.Allow}, true},
		"a rule where there is a way": {with, egress.Policy{Allow: []egress.Rule{rule}}, false},
	} {
		if err := connects(c.driver, &c.policy); errors.Is(err, driver.ErrUnsupported) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
