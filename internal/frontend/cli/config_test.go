package cli_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func TestConfigShow(t *testing.T) {
	e := &fake{settings: engine.Configuration{
		Settings: []engine.Setting{
			{Key: "durability", Value: `"strict"`, Origins: []engine.SettingOrigin{{File: "/home/me/config.toml", Value: `"strict"`, Counts: true}}},
			{Key: "network.allow", Origins: []engine.SettingOrigin{{File: "/src/app/.litterbox.toml", Value: `["a.example"]`}}},
		},
		Notes: []string{"network.allow needs trust"},
	}}
	wantOutcome(t, lb(t, e, "", "config", "set", "driver", "docker"), outcome{2, "",
		"litterbox: cannot run litterbox config: there is no \"set\": config shows, and keys are set in .litterbox.toml or in your own config.toml\n  try: litterbox config --help\n"})
	wantOutcome(t, lb(t, e, "", "config", "show"), outcome{0, "durability = \"strict\"\n", "note: network.allow needs trust\n"})
	wantOutcome(t, lb(t, e, "", "config", "show", "--origin"), outcome{0,
		"/home/me/config.toml\tdurability = \"strict\"\n/src/app/.litterbox.toml\tnetwork.allow = [\"a.example\"]  # not in effect\n",
		"note: network.allow needs trust\n"})
	golden(t, "json/config.json", lb(t, e, "", "config", "show", "--json").Stdout)
	wantOutcome(t, lb(t, &fake{}, "", "config", "show"), outcome{0, "",
		"note: nothing is configured, and every key has its default; litterbox init writes .litterbox.toml\n"})
}
