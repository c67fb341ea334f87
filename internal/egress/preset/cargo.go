package preset

import (
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// crates.io's sparse index, and the host that its config.json points to for the
// crates themselves.
const (
	cargoIndex = "https://index.crates.io"
	cargoFiles = "https://static.crates.io"
)

// cargoConfig is the part of cargo's config.toml that matters here.
type cargoConfig struct {
	Source map[string]struct {
		ReplaceWith string `toml:"replace-with"`
		Registry    string `toml:"registry"`
		Directory   string `toml:"directory"`
		LocalPath   string `toml:"local-registry"`
	} `toml:"source"`
	Registries map[string]struct {
		Index string `toml:"index"`
	} `toml:"registries"`
}

// readCargo follows source replacement from crates.io to its end and adds every
// named registry.
func readCargo(r *reader) {
	home := r.env.Getenv("CARGO_HOME")
	if home == "" {
		home = r.home(".cargo")
	}
	replace := map[string]string{}  // source to source
	registry := map[string]string{} // source to URL
	directory := map[string]bool{}  // source on disk
	from := map[string]string{}     // source to file
	for _, dir := range []string{r.project(".cargo"), home} {
		if dir == "" {
			continue
		}
		for _, name := range []string{"config.toml", "config"} { // the second is the older name
			path := filepath.Join(dir, name)
			var config cargoConfig
			if err := toml.Unmarshal([]byte(r.file(path)), &config); err != nil {
				r.problem(path + " is not valid TOML")
				continue
			}
			for source, s := range config.Source {
				if _, known := from[source]; known {
					continue // the stronger file decided
				}
				from[source] = path
				replace[source], registry[source] = s.ReplaceWith, s.Registry
				directory[source] = s.Directory != "" || s.LocalPath != ""
			}
			for name, one := range config.Registries {
				if one.Index != "" {
					registry[name], from[name] = one.Index, path
					r.allowRegistry(one.Index, path)
				}
			}
		}
	}
	source := "crates-io"
	for range 16 { // a chain longer than that is a circle
		if replace[source] == "" {
			break
		}
		source = replace[source]
	}
	switch {
	case directory[source]:
		r.from(from[source])
		r.problem("cargo takes crates from a directory of this machine")
	case registry[source] != "":
		r.allowRegistry(registry[source], from[source])
	default:
		r.allow(cargoIndex, defaults, "")
		r.allow(cargoFiles, defaults, "")
	}
}

// allowRegistry adds an index. Only its config.json, which is not fetched here,
// says where its crates are.
func (r *reader) allowRegistry(index, from string) {
	address := strings.TrimPrefix(index, "sparse+")
	r.allow(address, from, "")
	if strings.HasPrefix(address, cargoIndex) || strings.HasPrefix(address, "https://github.com/rust-lang/crates.io-index") {
		r.allow(cargoFiles, from, "")
	} else {
		r.preset.Warning = "if a registry keeps its crates on another host (dl in its config.json), allow that host too"
	}
}
