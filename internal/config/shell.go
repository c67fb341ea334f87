package config

// Shell is the section about the shell that litterbox shell opens.
type Shell struct {
	RC string // a file of the host; a clean absolute path, or "~/" and one
}

func shellKeys() []key {
	return []key{
		{
			Key: Key{
				Name: "shell.rc", Type: "string", Own: true,
				Meaning: "A file of yours, absolute or beginning with ~/, that the shell of `litterbox shell` reads when it starts: aliases, a prompt. It is read again for each shell, may have up to 64 KiB, and is visible to everything inside. It is written in the language of your shell. Without it, the shell has colors, completion and the usual aliases; the other startup files of your home stay outside.",
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				clean, why := cleanPath(v.text)
				if why != "" {
					return wrong(v, `rc = "~/.config/litterbox/shellrc"`, "cannot read %q: %s", v.text, why)
				}
				c.Shell.RC = clean
				return nil
			},
			merge: func(*Config, Config) {}, // never from a repository
		},
	}
}
