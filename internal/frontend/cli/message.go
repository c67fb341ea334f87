package cli

import "github.com/spf13/pflag"

// paragraphs is a flag whose values are paragraphs of one text, as git's -m.
type paragraphs struct {
	text  *string
	given bool
}

// messageFlag adds -m, which may be repeated.
func messageFlag(flags *pflag.FlagSet, text *string, usage string) {
	flags.VarP(&paragraphs{text: text}, "message", "m", usage)
}

func (p *paragraphs) String() string { return "" } // what it is without the flag

func (p *paragraphs) Type() string { return "string" }

func (p *paragraphs) Set(value string) error {
	if p.given {
		value = *p.text + "\n\n" + value
	}
	*p.text, p.given = value, true
	return nil
}
