package config

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// limitKeys are the keys of [limits]. A repository may always ask for less.
func limitKeys() []key {
	var keys []key
	for _, l := range []struct{ name, kind, meaning string }{
		{sandbox.LimitCPUs, "number", `How many processors' worth of time a sandbox gets, for example 1.5.`},
		{sandbox.LimitMemory, "size", `Memory of all processes together, for example "4GiB", without caches that the kernel can drop. Processes that exceed it are ended. Unless set, half of the machine's memory.`},
		{sandbox.LimitPIDs, "number", `Processes and threads together, the guest's own (about twenty) included. At the limit nothing new can be started, and a fork bomb is ended. Unless set, 4096.`},
		{sandbox.LimitDisk, "size", `Everything that a sandbox has on disk: changed files, home and temporary files. Each file counts as at least 4 KiB. When the limit is exceeded, everything inside is ended. Unless set, half of what was free when the sandbox was created.`},
		{sandbox.LimitDiskIO, "size per second", `Bytes read and bytes written per second, each, for example "50MiB/s".`},
		{sandbox.LimitOpenFiles, "number", `Open files of each process.`},
		{sandbox.LimitTime, "duration", `How long one command or shell may run, for example "30m", whatever --timeout says. Time spent paused does not count.`},
		{sandbox.LimitBudget, "string", `What calls of language models may cost in total, over the life of the sandbox, for example "5 USD", "200k tokens" or both, "5 USD, 2M tokens". A call that may cost more than what is left is refused before it is sent. Dollars are counted by the table of prices, tokens are all that a call reads and writes. See [cost.md](cost.md).`},
	} {
		keys = append(keys, key{
			Key:   Key{Name: "limits." + l.name, Type: l.kind + ` or "none"`, Meaning: l.meaning, Restricts: true, Untrusted: "it only reduces"},
			shape: quantity,
			read: func(c *Config, v value) []problem {
				set, err := c.Limits.Parse(l.name, v.text)
				if err != nil {
					return wrong(v, printable(fault.HintOf(err)), "%s", err.Error())
				}
				c.Limits = set
				return nil
			},
			merge: func(base *Config, over Config) {
				if l.name == sandbox.LimitBudget {
					base.Limits.Budget = base.Limits.Budget.Least(over.Limits.Budget)
				} else if !over.Limits.Wider(l.name, base.Limits) {
					base.Limits = base.Limits.With(l.name, over.Limits)
				}
			},
		})
	}
	keys = append(keys, key{
		Key: Key{
			Name: "limits.idle-stop", Type: `duration or "none"`, Restricts: true, Untrusted: "it only stops sooner",
			Meaning: `Stop a sandbox that has been idle for this long, for example "30m": no command runs, no client is connected to one of its ports, and nothing in it is working. Nothing is lost: the next command commits what is there and starts it again, services included. Unless set, 2 hours for sandboxes in which an agent has worked, and never for others.`,
		},
		shape: text,
		read: func(c *Config, v value) []problem {
			if v.text == sandbox.None {
				c.IdleStop = -1
				return nil
			}
			d, err := time.ParseDuration(v.text)
			if err != nil || d < time.Second {
				return wrong(v, `idle-stop = "30m"`, "limits.idle-stop must be a duration of a second or more, or \"none\", not %q", v.text)
			}
			c.IdleStop = d
			return nil
		},
		merge: func(base *Config, over Config) {
			if over.IdleStop > 0 && (base.IdleStop <= 0 || over.IdleStop < base.IdleStop) {
				base.IdleStop = over.IdleStop
			}
		},
	})
	return append(keys, key{
		Key: Key{
			Name: "limits.idle-pause", Type: `duration or "none"`, Restricts: true, Untrusted: "it only pauses sooner",
			Meaning: `Pause a sandbox when no command has run and no client has been connected for this long, for example "10m". Processes left in the background are paused too; the next command resumes everything. Unless set, never.`,
		},
		shape: text,
		read: func(c *Config, v value) []problem {
			if v.text == sandbox.None {
				c.IdlePause = 0
				return nil
			}
			d, err := time.ParseDuration(v.text)
			if err != nil || d < time.Second {
				return wrong(v, `idle-pause = "10m"`, "limits.idle-pause must be a duration of a second or more, not %q", v.text)
			}
			c.IdlePause = d
			return nil
		},
		merge: func(base *Config, over Config) {
			if over.IdlePause > 0 && (base.IdlePause == 0 || over.IdlePause < base.IdlePause) {
				base.IdlePause = over.IdlePause
			}
		},
	})
}
