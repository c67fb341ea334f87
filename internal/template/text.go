package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text returns the file: each part has a comment that says where it comes from.
func (d Draft) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# What sandboxes of this repository get. Made by litterbox init from:")
	for _, found := range d.Found {
		line("#   %s", found)
	}
	if len(d.Found) == 0 {
		line("#   nothing that it knows: no lock file, no services, no dev container")
	}
	line("# docs/reference/configuration.md lists every key. What reaches the host or the")
	line("# network takes effect after: litterbox trust")
	if d.Image != "" || len(d.Setup) > 0 {
		line("\n[container]")
	}
	if d.Image != "" {
		line("# The image of the dev container; without it the programs of this machine serve.")
		line("base-image = %s", quoted(d.Image))
	}
	if len(d.Setup) > 0 {
		line("# Runs once in a new sandbox:")
		commands := make([]string, len(d.Setup))
		for n, one := range d.Setup {
			line("#   %s", plain(one.why))
			commands[n] = one.command
		}
		line("setup-command = %s", quotedList([]string{"sh", "-ec", strings.Join(commands, "\n")}))
	}
	d.tables(line)
	if len(d.Presets) > 0 {
		line("\n[network]")
		line("# Everything else is refused; litterbox network NAME shows what was.")
		line("allow = %s", quotedList(d.Presets))
	}
	if d.CPUs != "" || d.Memory != "" {
		line("\n[limits]")
		if d.CPUs != "" {
			line("cpus = %s", d.CPUs)
		}
		if d.Memory != "" {
			line("memory = %s", quoted(d.Memory))
		}
	}
	if len(d.Tools) > 0 {
		line("\n# Take the # away, and litterbox build has these versions in what sandboxes begin with;")
		line("# until then the programs of this machine, or of container.base-image, are what is there.")
		line("# [tools]")
		for _, name := range slices.Sorted(maps.Keys(d.Tools)) {
			line("# %s = %s # %s", name, quoted(d.Tools[name].version), d.Tools[name].file)
		}
	}
	if len(d.Notes) > 0 {
		line("\n# Also found:")
		for _, note := range slices.Sorted(slices.Values(d.Notes)) {
			line("#   %s", note)
		}
	}
	return b.String()
}

// tables writes the tables below container.
func (d Draft) tables(line func(string, ...any)) {
	if len(d.Env) > 0 {
		line("\n[container.env]")
		for _, key := range slices.Sorted(maps.Keys(d.Env)) {
			line("%s = %s", quoted(key), quoted(d.Env[key]))
		}
	}
	if len(d.Ports) > 0 {
		line("\n# Reached from outside on numbers that litterbox ports shows.")
		line("[container.ports]")
		for _, one := range d.Ports {
			line("%s = %d", quoted(one.name), one.number)
		}
	}
	for _, one := range d.Services {
		off := ""
		line("\n# %s", plain(one.why))
		if one.off != "" {
			line("# (%s)", plain(one.off))
			off = "# "
		}
		line("%s[container.services.%s]", off, one.name)
		line("%scommand = %s", off, quotedList(one.command))
		if one.ready != "" {
			line("%sready = %s", off, one.ready)
		}
	}
}
