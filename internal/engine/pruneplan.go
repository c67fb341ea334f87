package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

func (e *Engine) planPrune(ctx context.Context, request PruneRequest) ([]Pruned, error) {
	defer e.busy("looking for what can go")()
	plan := []Pruned{}
	layers, err := e.sharedLayers(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	now := e.now()
	for _, layer := range layers {
		if layer.used {
			continue
		}
		one := Pruned{Kind: "cache", Name: layer.entry.Kind + "/" + layer.entry.Key, Repository: layer.repository,
			Bytes: inodes{}.size(layer.entry.Dir), Why: "no sandbox uses it", layer: layer}
		if layer.entry.Partial {
			one.Why = "it was never finished"
		}
		if age := now.Sub(layer.entry.Used); age < 0 {
			// Its date is from a clock that was set back: it rests from now on.
			if !request.DryRun {
				layer.cache.Touch(layer.entry)
			}
			one.Kept = "it was used in the future, by its date; prune again in " + cacheRest.String()
		} else if age < cacheRest {
			one.Kept = "it was used " + age.Round(time.Second).String() + " ago"
		}
		plan = append(plan, one)
	}
	if request.All {
		unused, err := e.planImages(now)
		if err != nil {
			return nil, err
		}
		goldens, err := e.planGoldens()
		if err != nil {
			return nil, err
		}
		machines, err := e.planMachines(ctx)
		if err != nil {
			return nil, err
		}
		userlands, err := e.planUserlands(now)
		if err != nil {
			return nil, err
		}
		plan = slices.Concat(plan, unused, goldens, machines, userlands)
	}
	unfrozen, err := frozen.Unused(e.frozenStore(), e.frozenHolders)
	if err != nil && fault.KindOf(err) != fault.Conflict { // a sandbox that is moving keeps them all
		return nil, err
	}
	for _, name := range unfrozen {
		plan = append(plan, Pruned{Kind: "frozen", Name: name, Bytes: inodes{}.size(filepath.Join(e.frozenStore(), name)), Why: "no sandbox or snapshot uses it"})
	}
	trashed, err := e.Trash(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	for _, one := range trashed {
		if one.Files && one.Until != nil && now.After(*one.Until) {
			plan = append(plan, Pruned{Kind: "trash", Name: one.Entry, Repository: one.Repository, Bytes: one.Bytes,
				Why: "it was deleted " + days(now.Sub(one.DeletedAt)) + " ago; its commits stay", trash: one})
		}
	}
	infos, err := e.List(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	usage, err := e.DiskUsage(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	left := usage.Total
	for _, one := range plan {
		if one.Kept == "" && one.made.Driver == "" { // usage is about this disk
			left -= one.Bytes
		}
	}
	byRepository := map[string][]Info{}
	for _, info := range infos {
		byRepository[info.Repository] = append(byRepository[info.Repository], info)
	}
	for repository, infos := range byRepository {
		sandboxes, err := e.planSandboxes(ctx, infos, &left, request.Force)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", repository, err)
		}
		plan = append(plan, sandboxes...)
	}
	return plan, nil
}
