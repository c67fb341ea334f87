package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Configuration is the result of the configuration files for new sandboxes.
type Configuration struct {
	Settings []Setting `json:"settings"`
	Notes    []string  `json:"notes"` // why a value does not count
}

// Setting is one key that a configuration file sets.
type Setting struct {
	Key     string          `json:"key"`
	Value   string          `json:"value"` // in TOML; empty when no value counts
	Origins []SettingOrigin `json:"origins"`
}

// SettingOrigin is one file that sets a key.
type SettingOrigin struct {
	File   string `json:"file"`
	Value  string `json:"value"`
	Counts bool   `json:"counts"`
}

// Configuration lists every key that the user's file or that of the repository
// at dir sets. Outside of a repository it is the user's alone.
func (e *Engine) Configuration(ctx context.Context, dir string) (Configuration, error) {
	top, common := "", ""
	if _, ok := git.Locate(dir); ok {
		repo, err := git.Open(ctx, dir)
		if err != nil {
			return Configuration{}, err
		}
		top, common = repo.Top, repo.CommonDir
	}
	sources, err := config.LoadSources(callerOf(ctx), top)
	if err != nil {
		return Configuration{}, err
	}
	found, err := e.settingsOf(common, sources.User(), sources.Repository())
	if err != nil {
		return Configuration{}, err
	}
	settings, err := sources.Settings(found.config)
	if err != nil {
		return Configuration{}, err
	}
	shown := Configuration{Settings: []Setting{}, Notes: found.notes}
	for _, set := range settings {
		one := Setting{Key: set.Key, Value: set.Value}
		for _, origin := range set.Origins {
			one.Origins = append(one.Origins, SettingOrigin(origin))
		}
		shown.Settings = append(shown.Settings, one)
	}
	return shown, nil
}
