package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Network is a sandbox's policy revision in force and its attempts.
type Network struct {
	Revision int                  `json:"revision"`
	Default  string               `json:"default"`
	Allow    []egress.Rule        `json:"allow"`
	Deny     []egress.Rule        `json:"deny"`
	Seen     []egress.Observation `json:"seen"`
}

// PolicyRequest adds rules to a sandbox's policy.
type PolicyRequest struct {
	Dir   string
	Name  string
	Rules []string
	Deny  bool // add to the deny list instead
	Save  bool // also to .litterbox.toml, for sandboxes to come
	Pause bool // come into force while the sandbox is paused for it
}

// policyOf makes the first revision from the configuration. Presets are expanded on
// the host, where the tools' own configuration is.
func (e *Engine) policyOf(ctx context.Context, c config.Config) (*egress.Policy, error) {
	policy := &egress.Policy{Default: c.Network.Default, Revision: 1}
	var err error
	if policy.Allow, err = parseRules(c.Network.Allow); err != nil {
		return nil, err
	}
	if policy.Deny, err = parseRules(c.Network.Deny); err != nil {
		return nil, err
	}
	return expand(ctx, policy)
}

func expand(ctx context.Context, policy *egress.Policy) (*egress.Policy, error) {
	environment := preset.Host(callerOf(ctx))
	environment.Lookup = lookup
	around := egress.WatchSurroundings()()
	environment.Beside = around.Beside
	return policy.Expand(func(name string) ([]string, error) {
		rules, err := preset.Expand(name, environment)
		if fault.KindOf(err) != fault.NotFound {
			return rules, err
		}
		return nil, noPreset(name)
	})
}

// lookupPatience bounds the look-up of a registry's addresses; without an answer it
// counts as one of the public internet.
const lookupPatience = 2 * time.Second

// lookup resolves a registry's name on the host: one in the human's own network
// needs its private addresses allowed too.
func lookup(host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	return addresses
}

func parseRules(texts []string) ([]egress.Rule, error) { return rulesOf(texts, egress.ParseRule) }

func rulesOf(texts []string, parse func(string) (egress.Rule, error)) ([]egress.Rule, error) {
	var rules []egress.Rule
	for _, text := range texts {
		rule, err := parse(text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// policy reads the revision in force. A damaged one is replaced by one that denies
// everything.
func (e *Engine) policy(p *place) (*egress.Policy, error) {
	policy, err := readPolicy(p.dir)
	if errors.Is(err, seal.ErrDamaged) {
		return p.denyAll(e)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the network policy of sandbox %q", p.record.Name)
	}
	return policy, nil
}

// readPolicy reads the policy of the sandbox in dir; without a file it denies
// everything.
func readPolicy(dir string) (*egress.Policy, error) {
	policy := &egress.Policy{}
	data, err := process.ReadAtOnce(filepath.Join(dir, keeper.PolicyFile))
	if errors.Is(err, os.ErrNotExist) {
		return policy, nil
	}
	if err == nil {
		err = seal.Decode(data, policy)
	}
	return policy, err
}

// savePolicy replaces the revision on disk in one step.
func (p *place) savePolicy(policy *egress.Policy) error {
	data, err := seal.Encode(policy)
	temp := p.path("." + keeper.PolicyFile)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, p.path(keeper.PolicyFile))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the network policy of sandbox %q", p.record.Name)
	}
	return nil
}

// tellKeeper asks a running keeper for one of its own operations. When none runs
// there is none to tell, and the next one reads what is on disk. It does not wait for
// the guest, which may be far away.
func (p *place) tellKeeper(ctx context.Context, op wire.Op) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	stream := &unwelcomed{UnixConn: conn}
	if err = wire.Ask(ctx, stream, wire.Request{Op: op}); !stream.done {
		return nil
	}
	return err
}

// Network shows the policy of a sandbox and what programs in it have tried.
func (e *Engine) Network(ctx context.Context, dir, name string) (Network, error) {
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return Network{}, err
	}
	return e.network(ctx, p)
}

func (e *Engine) network(ctx context.Context, p *place) (Network, error) {
	policy, err := e.policy(p)
	if err != nil {
		return Network{}, err
	}
	if err := p.tellKeeper(ctx, keeper.OpNetwork); err != nil {
		return Network{}, err
	}
	seen, err := egress.ReadObservations(p.path(keeper.SeenFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Network{}, err
	}
	view := Network{Revision: policy.Revision, Default: policy.Default, Allow: policy.Allow, Deny: policy.Deny, Seen: seen}
	if view.Default == "" {
		view.Default = "deny"
	}
	if view.Seen == nil {
		view.Seen = []egress.Observation{}
	}
	return view, nil
}

// FollowNetwork calls report for each attempt from now on, until ctx ends or the
// sandbox stops.
func (e *Engine) FollowNetwork(ctx context.Context, dir, name string, report func(egress.Observation)) error {
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return err
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	if err := wire.WriteJSON(stream, wire.KindRequest, wire.Request{Version: wire.Version, Op: keeper.OpFollow}); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot follow the network of sandbox %q", p.record.Name)
	}
	for frames := wire.NewReader(stream); ; {
		_, payload, err := frames.Next()
		if err != nil {
			return nil // the sandbox stopped, or the user has seen enough
		}
		var observation egress.Observation
		if err := json.Unmarshal(payload, &observation); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot understand the keeper")
		}
		report(observation)
	}
}

// ChangePolicy makes a new revision with more rules, in force at once for new
// and for living connections, without restarting anything.
func (e *Engine) ChangePolicy(ctx context.Context, request PolicyRequest) (view Network, err error) {
	parse := egress.ParseAllowed
	if request.Deny {
		parse = egress.ParseRule
	}
	rules, err := rulesOf(request.Rules, parse)
	if err != nil {
		return Network{}, err
	}
	e, p, err := e.findAny(ctx, request.Dir, request.Name)
	if err != nil {
		return Network{}, err
	}
	verb := "allow"
	if request.Deny {
		verb = "deny"
	}
	ctx, call, err := e.recordIn(ctx, p, verb, map[string]any{"rules": request.Rules, "save": request.Save, "pause": request.Pause})
	if err != nil {
		return Network{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	unlock, err := p.store.Lock(ctx, p.record.ID, "policy")
	if err != nil {
		return Network{}, err
	}
	defer unlock()
	policy, err := e.policy(p)
	if err != nil {
		return Network{}, err
	}
	before := *policy
	list := &policy.Allow
	if request.Deny {
		list = &policy.Deny
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(*list, func(r egress.Rule) bool { return r.String() == rule.String() }) {
			*list = append(*list, rule)
		}
	}
	policy.Revision++
	if policy, err = expand(ctx, policy); err != nil {
		return Network{}, err
	}
	if err := connects(p.driver, policy); err != nil {
		return Network{}, err
	}
	if err := p.savePolicy(policy); err != nil {
		return Network{}, err
	}
	op := keeper.OpPolicy
	if request.Pause {
		op = keeper.OpDeploy
	}
	if err := p.tellKeeper(ctx, op); err != nil {
		if fault.KindOf(err) == fault.Unsupported { // a keeper of another version, which keeps its policy
			err = errors.Join(err, p.savePolicy(&before))
		}
		return Network{}, err
	}
	change := "allow "
	if request.Deny {
		change = "deny "
	}
	e.emit(ctx, p, event(sandbox.EventPolicy, 0, "revision", itoa(policy.Revision), "change", change+strings.Join(request.Rules, " ")))
	if request.Save {
		if err := e.saveRules(ctx, p, request); err != nil {
			return Network{}, err
		}
	}
	return e.network(ctx, p)
}

// saveRules writes rules to the repository's configuration. A configuration
// that was trusted before stays so: the human has just typed the difference.
func (e *Engine) saveRules(ctx context.Context, p *place, request PolicyRequest) error {
	trust := config.Trust{File: e.Store.TrustFile()}
	before, err := config.Load(p.record.Repository)
	if err != nil {
		return err
	}
	trusted := before.Hash == ""
	if !trusted {
		if trusted, err = trust.Trusted(p.record.GitDir, before.Hash); err != nil {
			return err
		}
	}
	list := egress.Allow
	if request.Deny {
		list = egress.Deny
	}
	for _, rule := range request.Rules {
		if err := config.SaveRule(ctx, filepath.Join(p.record.Repository, config.RepositoryFile), list, rule); err != nil {
			return err
		}
	}
	after, err := config.Load(p.record.Repository)
	if err != nil || !trusted {
		return err
	}
	return trust.Grant(ctx, p.record.GitDir, after.Hash)
}

// ExplainNetwork tells what the policy says about a destination, without
// dialling.
func (e *Engine) ExplainNetwork(ctx context.Context, dir, name, destination string) (egress.Explanation, error) {
	host, port, err := egress.ParseDestination(destination)
	if err != nil {
		return egress.Explanation{}, err
	}
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return egress.Explanation{}, err
	}
	policy, err := e.policy(p)
	if err != nil {
		return egress.Explanation{}, err
	}
	return egress.Explain(policy, host, port, egress.WatchSurroundings()()), nil
}

// SuggestNetwork proposes the smallest allow-list for what was denied so far.
func (e *Engine) SuggestNetwork(ctx context.Context, dir, name string) ([]egress.Suggestion, error) {
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	policy, err := e.policy(p)
	if err != nil {
		return nil, err
	}
	view, err := e.network(ctx, p)
	if err != nil {
		return nil, err
	}
	return egress.Suggest(policy, view.Seen, preset.Shared), nil
}

// Presets lists the named rule sets and what each means on this machine.
func (e *Engine) Presets(ctx context.Context) []preset.Preset {
	return preset.List(preset.Host(callerOf(ctx)))
}

// summary is the network as listings show it.
func summary(policy *egress.Policy) string {
	switch {
	case policy.Default == "allow":
		return "open"
	case len(policy.Allow) == 0:
		return "none"
	case len(policy.Allow) == 1:
		return "1 rule"
	}
	return fmt.Sprintf("%d rules", len(policy.Allow))
}

// The network's own words, for frontends, which know no egress.
type (
	// Observation is one destination that was tried, with verdict and counts.
	Observation = egress.Observation
	// Explanation is the verdict on one destination and its reason.
	Explanation = egress.Explanation
	// Suggestion is a rule that would have allowed what was denied.
	Suggestion = egress.Suggestion
	// Preset is a named set of rules and what it means on this machine.
	Preset = preset.Preset
)
