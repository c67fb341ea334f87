package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Cost is the section about the cost of model calls. Only the human's own file may
// set it: it is about the human's money.
type Cost struct {
	Meter     bool // look into calls without any other reason, too
	DayBudget sandbox.Budget
	Hosts     []string               // besides the known ones
	Prices    map[string]meter.Price // by model
}

// costKeys are the keys of [cost].
func costKeys() []key {
	never := func(*Config, Config) {}
	return []key{
		{
			Key: Key{
				Name: "cost.meter", Type: "true or false", Own: true,
				Meaning: "Count what calls of language models cost, even in sandboxes without a budget. This inspects connections to their hosts, with the sandbox's own certificate authority. Unless set, a host is inspected only for another reason, such as a budget. See [cost.md](cost.md).",
			},
			shape: boolean,
			read: func(c *Config, v value) []problem {
				c.Cost.Meter = v.truth
				return nil
			},
			merge: never,
		},
		{
			Key: Key{
				Name: "cost.day-budget", Type: "string", Own: true,
				Meaning: `What calls of all sandboxes together may cost in one day, for example "20 USD" or "5M tokens". A call that may cost more than what is left is refused before it is sent.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				budget, err := sandbox.ParseBudget(v.text)
				if err != nil {
					return wrong(v, `day-budget = "20 USD"`, "cannot use %q for cost.day-budget: %s", v.text, printable(err.Error()))
				}
				c.Cost.DayBudget = budget
				return nil
			},
			merge: never,
		},
		{
			Key: Key{
				Name: "cost.hosts", Type: "list of strings", Own: true,
				Meaning: `More hosts that answer model calls in one of the known formats, for example ["openrouter.ai", "llm.example.com"]. These are known already: ` + strings.Join(meter.Known(), ", ") + ".",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				for _, item := range v.items {
					host := strings.ToLower(item.text)
					if host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" || strings.Trim(host, ".-") != host {
						problems = append(problems, wrong(item, `hosts = ["llm.example.com"]`, "cost.hosts: %q is not the name of a host", item.text)...)
						continue
					}
					c.Cost.Hosts = union(c.Cost.Hosts, []string{host})
				}
				return problems
			},
			merge: never,
		},
		{
			Key: Key{
				Name: "cost.prices", Type: "table of tables", Own: true,
				Meaning: `What models cost, in dollars per million tokens, instead of the built-in table: ` + "`[cost.prices.\"my-model\"]`" + ` with ` + "`input`" + ` and ` + "`output`" + `, and, where they differ from the input, ` + "`cache-read`, `cache-write` and `cache-write-hour`" + `. ` +
					"`context` and `max-output`" + ` are the most tokens that the model reads and writes, which bounds what is reserved for a call that does not say.`,
			},
			shape: nested,
			nest:  readPrices,
			merge: never,
		},
	}
}

// maxPrices bounds how many models have a price of their own.
const maxPrices = 256

func readPrices(c *Config, t tree) []problem {
	const example = `[cost.prices."my-model"] with input = 1.25 and output = 10`
	models, ok := t.value.(map[string]any)
	if !ok || len(models) > maxPrices {
		return t.wrong(example, "cost.prices must be a table of at most %d models", maxPrices)
	}
	var problems []problem
	for _, model := range slices.Sorted(maps.Keys(models)) {
		part := t.part(model, models[model])
		price, err := readPrice(part.value)
		if err != nil {
			problems = append(problems, part.wrong(example, "cost.prices.%s: %s", printable(model), printable(err.Error()))...)
			continue
		}
		if c.Cost.Prices == nil {
			c.Cost.Prices = map[string]meter.Price{}
		}
		c.Cost.Prices[strings.ToLower(model)] = price
	}
	return problems
}

func readPrice(value any) (meter.Price, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return meter.Price{}, fault.New(fault.Invalid, "it must be a table")
	}
	var p meter.Price
	rates := map[string]*meter.Rate{"input": &p.Input, "output": &p.Output, "cache-read": &p.CacheRead, "cache-write": &p.CacheWrite, "cache-write-hour": &p.CacheHour}
	counts := map[string]*int64{"context": &p.Context, "max-output": &p.MaxOutput}
	for name, field := range fields {
		var n float64
		switch number := field.(type) {
		case int64:
			n = float64(number)
		case float64:
			n = number
		default:
			return p, fmt.Errorf("%s must be a number", name)
		}
		switch {
		case rates[name] != nil && n >= 0 && n <= 10_000: // a NaN is neither
			*rates[name] = meter.Rate(math.Round(n * float64(meter.Dollar)))
		case rates[name] != nil:
			return p, fmt.Errorf("%s must be from 0 to 10000 dollars per million tokens", name)
		case counts[name] != nil && n >= 1 && n <= 1e9:
			*counts[name] = int64(n)
		case counts[name] != nil:
			return p, fmt.Errorf("%s must be a number of tokens", name)
		default:
			return p, fmt.Errorf("there is no %q", name)
		}
	}
	for _, name := range []string{"input", "output"} {
		if _, ok := fields[name]; !ok {
			return p, fmt.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"cache-read", "cache-write", "cache-write-hour"} {
		if _, ok := fields[name]; !ok {
			*rates[name] = p.Input
		}
	}
	p.CacheHour = max(p.CacheHour, p.CacheWrite)
	return p, nil
}
