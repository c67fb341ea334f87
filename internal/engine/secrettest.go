package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// TestSecrets reads the values of secrets, and says why they cannot be used; an
// empty name means all.
func (e *Engine) TestSecrets(ctx context.Context, request SecretRequest) ([]Secret, error) {
	counts, waiting, err := e.configured(ctx, request.Dir)
	if err != nil {
		return nil, err
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	policy, err := e.policyOf(ctx, counts)
	if err != nil {
		return nil, err
	}
	var all []Secret
	for n, spec := range slices.Concat(counts.Secrets, waiting) {
		if request.Name != "" && spec.Name != request.Name {
			continue
		}
		one := Secret{Name: spec.Name, From: spec.From.String(), Hosts: hostsOf(spec), In: places(spec), Counts: n < len(counts.Secrets)}
		value, err := reader.Read(ctx, spec.From)
		if err == nil {
			err = secret.CheckValue(secret.TrimValue(value))
		}
		if err == nil {
			err = know(ctx, e.Store, reader.Vault, value)
		}
		clear(value)
		switch {
		case err != nil:
			one.Problem = err.Error()
			if hint := fault.HintOf(err); hint != "" {
				one.Problem += "; " + hint
			}
		case !one.Counts:
			one.Problem = "it " + needsTrust
		default:
			refused := refusedHosts(policy, spec)
			if len(refused) == 0 {
				break
			}
			if one.Runs, err = e.runsAllowing(ctx, counts, spec); err != nil {
				return nil, err
			}
			if len(one.Runs) == 0 {
				one.Problem = withoutRule(refused)
			}
		}
		all = append(all, one)
	}
	if len(all) == 0 && request.Name != "" {
		return nil, fault.New(fault.NotFound, "cannot test the secret %q: no configuration names it", request.Name).WithHint("litterbox secrets list")
	}
	return all, nil
}

// refusedHosts are the hosts of a secret that a policy refuses.
func refusedHosts(policy *egress.Policy, spec secret.Spec) (refused []secret.Host) {
	for _, host := range spec.Hosts {
		if !policy.Decide(host.Target()).Allowed {
			refused = append(refused, host)
		}
	}
	return refused
}

// withoutRule says that hosts are refused, and what allows them.
func withoutRule(refused []secret.Host) string {
	var names, rules []string
	for _, host := range refused {
		names, rules = append(names, host.String()), append(rules, host.Rule())
	}
	return "no rule allows " + strings.Join(names, ", ") + "; litterbox allow NAME " + strings.Join(rules, " ")
}

// runsAllowing are the commands that allow all hosts of a secret: runs of agents
// that log in with it, or require it.
func (e *Engine) runsAllowing(ctx context.Context, counts config.Config, spec secret.Spec) (runs []string, err error) {
	for _, name := range clientNames(counts.Agents) {
		client, err := clientOf(counts.Agents, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(client.Secrets, spec.Name) && !slices.ContainsFunc(client.Keys, func(key profile.Key) bool { return key.Variable == spec.Name }) {
			continue
		}
		during := counts
		isThis := func(variable string) bool { return variable == spec.Name }
		during.Network.Allow = slices.Concat(counts.Network.Allow, runRules(client, counts.Secrets), providerRules(client, isThis, nil))
		policy, err := e.policyOf(ctx, during)
		if err != nil {
			return nil, err
		}
		if len(refusedHosts(policy, spec)) == 0 {
			runs = append(runs, "litterbox agent run "+name)
		}
	}
	return runs, nil
}
