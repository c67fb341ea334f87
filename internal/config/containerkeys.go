package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/packagecache"
)

// containerKeys are the keys of [container]: what sandboxes hold and run.
func containerKeys() []key {
	return []key{
		{
			Key: Key{
				Name: "container.base-image", Type: "string", NeedsTrust: true,
				Meaning: "What the root file system of new sandboxes is made of, read-only:\n\n" +
					"- `\"host\"`, the default: this machine's own programs and libraries, with your toolchains.\n" +
					"- `\"/srv/rootfs\"` or `\"./rootfs\"`: a directory that holds a root file system. A relative path begins at the top of the repository and must stay in it.\n" +
					"- `\"docker.io/library/debian:12\"`: an image of a registry, pulled once; `litterbox create --pull` asks again. A login of `docker login` or `podman login` is used, outside of the sandbox.\n" +
					"- `\"oci:/path/to/layout\"` or `\"oci:/path/to/layout:NAME\"`: an OCI image layout.\n" +
					"- `\"docker-archive:/path.tar\"`: what `docker save` writes.\n\n" +
					"No container engine is needed. Of the image's configuration, `Env` applies (below `container.env`), the inner user gets the name in `User`, and `WorkingDir` exists; commands still start in the project, and everything belongs to the one user of the sandbox. Toolchains in your home are not mounted with an image; `mounts.read-only` can name them.",
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Container.BaseImage = v.text
				return checkBaseImage(v)
			},
			merge: func(base *Config, over Config) { base.Container.BaseImage = over.Container.BaseImage },
		},
		{
			Key: Key{
				Name: "container.runtime", Type: "string", Own: true,
				Meaning: "The runtime of new containers of the driver docker, by the name that `docker info` lists, such as `\"runsc\"` (gVisor) or `\"kata\"`; the engine's default, unless set. A runtime that the engine does not have, or in whose containers no sandbox can be fully isolated, is refused by name ([engines.md](engines.md#runtimes)). Podman takes its runtime from containers.conf.",
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Container.Runtime = v.text
				return checkRuntime(v)
			},
			merge: func(base *Config, over Config) { base.Container.Runtime = over.Container.Runtime },
		},
		{
			Key: Key{
				Name: "container.packages", Type: "list of strings", NeedsTrust: true,
				Meaning: `Packages that apt, or the package manager of the base image, installs in the system directories of every new sandbox, for example ["ripgrep", "postgresql"]: see ` + "`litterbox install`" + `. They come from the sources that this machine, or the base image, names. A golden keeps them, so that sandboxes do not wait for them. The lists of the repository and of the user are combined.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Container.Packages = v.texts()
				return checkPackages(v)
			},
			merge: func(base *Config, over Config) {
				base.Container.Packages = union(base.Container.Packages, over.Container.Packages)
			},
		},
		{
			Key: Key{
				Name: "container.package-caches", Type: "list of strings",
				Untrusted: "it can only remove some",
				Meaning:   "Which of your package caches sandboxes can use, so that builds find what has been downloaded: " + strings.Join(packagecache.Names(), ", ") + "; all of them, unless set. What a sandbox adds stays in that sandbox, and yours never change. `[]` keeps them all out. A repository can only remove some.",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Container.PackageCaches = v.texts()
				return checkCaches(v, "package", packagecache.Names())
			},
			merge: func(base *Config, over Config) {
				kept := slices.Clone(over.Container.PackageCaches)
				if mine := base.Container.PackageCaches; mine != nil {
					kept = slices.DeleteFunc(kept, func(name string) bool { return !slices.Contains(mine, name) })
				}
				base.Container.PackageCaches = kept
			},
		},
		{
			Key: Key{
				Name: "container.build-caches", Type: "list of strings", NeedsTrust: true,
				Meaning: "Which of your build caches sandboxes can use, so that the first build of a sandbox finds what you have built: " + strings.Join(packagecache.BuildNames(), ", ") + "; none, unless set. What a sandbox adds stays in that sandbox: yours never change, and no other sandbox sees it.\n\n" +
					"A build cache holds the results of *all* your projects: compiled code, and the output of tests. Sandboxes can read it, so name one only if they may. A [golden](golden.md) gives sandboxes a build cache of this repository alone.",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Container.BuildCaches = v.texts()
				return checkCaches(v, "build", packagecache.BuildNames())
			},
			merge: func(base *Config, over Config) {
				base.Container.BuildCaches = slices.Clone(over.Container.BuildCaches)
			},
		},
		{
			Key: Key{
				Name: "container.setup-command", Type: "list of strings",
				Untrusted: "it runs inside",
				Meaning:   `Command and arguments to run inside once, when a sandbox is created, for example ["npm", "ci"]. It runs in the project directory, and its result is committed. For several commands use ["sh", "-c", "…"].`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Container.SetupCommand = v.texts()
				return checkCommand(v)
			},
			merge: func(base *Config, over Config) {
				base.Container.SetupCommand = slices.Clone(over.Container.SetupCommand)
			},
		},
		{
			Key: Key{
				Name: "container.env", Type: "table of strings",
				Untrusted: "it is set inside only",
				Meaning:   "Environment variables of every command inside. Do not put secrets here: they would be in the file, and inside. Variables of the repository and of the user are combined; the repository's win.",
			},
			shape: table,
			read: func(c *Config, v value) []problem {
				if c.Container.Env == nil {
					c.Container.Env = map[string]string{}
				}
				for _, entry := range v.items {
					c.Container.Env[entry.name] = entry.text
				}
				return checkEnvironment(v)
			},
			merge: func(base *Config, over Config) {
				if base.Container.Env == nil {
					base.Container.Env = map[string]string{}
				}
				maps.Copy(base.Container.Env, over.Container.Env)
			},
		},
		{
			Key:   Key{Name: "container.services", Type: "table of tables", Meaning: servicesMeaning, Untrusted: "they run inside"},
			shape: nested,
			nest:  readServices,
			merge: func(base *Config, over Config) {
				base.Container.Services = mergeServices(base.Container.Services, over.Container.Services)
			},
		},
		{
			Key: Key{
				Name: "container.ports", Type: "list of strings, or table of numbers",
				Untrusted: "a port leads into the sandbox, listens on loopback, and its number is free",
				Meaning:   `Named ports that are forwarded from this machine, for example ["web", "api"] or { web = 3000, api = 0 }, where 0 means any. Each gets an unused port of this machine, on the loopback interface, which stays the same as long as it is free; ` + "`litterbox ports NAME`" + ` shows them. Inside, PORT_WEB is the number to listen on and HOST_PORT_WEB the one on this machine; they are equal unless a number is given. The ports of the repository and of the user are combined.`,
			},
			shape: nested,
			nest:  readPorts,
			merge: func(base *Config, over Config) {
				base.Container.Ports = mergePorts(base.Container.Ports, over.Container.Ports)
			},
		},
		{
			Key: Key{
				Name: "container.ports-listen", Type: "string", Own: true,
				Meaning: `Address of this machine that forwarded ports listen on, for example "0.0.0.0"; loopback unless set. Anyone who can reach that address can reach what runs in your sandboxes.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Container.PortsListen = v.text
				return checkListen(v)
			},
			merge: func(*Config, Config) {}, // never from a repository
		},
	}
}
