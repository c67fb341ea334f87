package engine

import (
	"context"
	"os"
	"reflect"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The services' own words, for frontends.
type (
	// ServiceStatus is one service at one moment.
	ServiceStatus = service.Status
	// ServiceWish is start, stop, restart or status.
	ServiceWish = service.Wish
)

// ServiceRequest asks for something to be done about services. Without names
// it means all of them.
type ServiceRequest struct {
	Dir           string // any directory of the repository
	Name          string // of the sandbox
	Action        ServiceWish
	Services      []string
	NoWait        bool // answer before what was asked for has happened
	AllowDegraded bool
}

// ServiceResult is the state of the services afterwards. A service that does not
// run is not an error.
type ServiceResult struct {
	Services []ServiceStatus
	Notes    []string
}

// Service starts, stops or restarts services, or reports their state. Wishes are
// remembered: a service that was started starts with the sandbox, one that was
// stopped does not. Definitions are read from the configuration again. Starting also
// starts what a service needs, and the sandbox.
func (e *Engine) Service(ctx context.Context, request ServiceRequest) (result ServiceResult, err error) {
	if !slices.Contains(service.Wishes(), request.Action) {
		return ServiceResult{}, noWish(request.Name, string(request.Action))
	}
	e, p, err := e.findAny(ctx, request.Dir, request.Name)
	if err != nil {
		return ServiceResult{}, err
	}
	if request.Action != service.WishStatus {
		var call *Call
		ctx, call, err = e.recordIn(ctx, p, "service "+string(request.Action), map[string]any{
			"services": request.Services, "allow_degraded": request.AllowDegraded,
		})
		if err != nil {
			return ServiceResult{}, err
		}
		defer func() { err = call.end("", nil, err) }()
	}
	if err := e.configure(ctx, p); err != nil {
		return ServiceResult{}, err
	}
	record, changed, err := e.wantServices(ctx, p, request)
	if err != nil {
		return ServiceResult{}, err
	}
	names := request.Services
	starts := request.Action == service.WishStart || request.Action == service.WishRestart
	if starts {
		names = nil
		for _, name := range request.Services {
			for _, need := range service.WithNeeds(record.Services, name) {
				if !slices.Contains(names, need) {
					names = append(names, need)
				}
			}
		}
	} else if state, _ := e.state(ctx, p.record); state != sandbox.Running {
		return ServiceResult{Services: idle(record, names, state), Notes: p.notes}, nil
	}
	stream, err := e.running(ctx, p, request.AllowDegraded)
	if err != nil {
		return ServiceResult{}, err
	}
	defer stream.Close()
	if changed {
		if err := p.tellKeeper(ctx, keeper.OpServices); err != nil {
			return ServiceResult{}, err
		}
	}
	order := wire.ServiceOrder{Action: request.Action, Names: names, Wait: !request.NoWait && request.Action != service.WishStatus}
	if request.Action == service.WishRestart && len(names) > len(request.Services) {
		// Its dependencies must run, not restart.
		if err := orderServices(ctx, p, wire.ServiceOrder{Action: service.WishStart, Names: names}); err != nil {
			return ServiceResult{}, err
		}
		order.Names = request.Services
	}
	if request.Action == service.WishStatus {
		list, err := e.services(ctx, p, sandbox.Running)
		return ServiceResult{Services: chosen(list, names), Notes: p.notes}, err
	}
	list, err := wire.Services(ctx, stream, order)
	return ServiceResult{Services: list, Notes: p.notes}, err
}

// chosen are the services of a list that were named, or all of them.
func chosen(list []ServiceStatus, names []string) []ServiceStatus {
	return slices.DeleteFunc(list, func(s ServiceStatus) bool { return len(names) > 0 && !slices.Contains(names, s.Name) })
}

// orderServices carries out an order on a stream of its own.
func orderServices(ctx context.Context, p *place, order wire.ServiceOrder) error {
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = wire.Services(ctx, stream, order)
	return err
}

// wantServices brings the record up to date: definitions from the configuration,
// and wishes from the request.
func (e *Engine) wantServices(ctx context.Context, p *place, request ServiceRequest) (record service.Record, changed bool, err error) {
	unlock, err := p.store.Lock(ctx, p.record.ID, "services")
	if err != nil {
		return record, false, err
	}
	defer unlock()
	found, err := e.side(p, store.ServicesFile, &record)
	if err != nil {
		return record, false, err
	}
	before := service.Record{Services: slices.Clone(record.Services), Wanted: slices.Clone(record.Wanted)}
	if err := defineServices(&record, p.config); err != nil {
		return record, false, err
	}
	for _, name := range request.Services {
		if !slices.ContainsFunc(record.Services, func(s service.Spec) bool { return s.Name == name }) {
			return record, false, noService(p.record.Name, name, serviceNames(record.Services))
		}
	}
	for _, spec := range record.Services {
		named := len(request.Services) == 0 || slices.Contains(request.Services, spec.Name)
		switch {
		case !named:
		case request.Action == service.WishStop:
			record.Wanted = slices.DeleteFunc(record.Wanted, func(name string) bool { return name == spec.Name })
		case request.Action == service.WishStart, request.Action == service.WishRestart:
			for _, name := range service.WithNeeds(record.Services, spec.Name) {
				if !slices.Contains(record.Wanted, name) {
					record.Wanted = append(record.Wanted, name)
				}
			}
		}
	}
	slices.Sort(record.Wanted)
	changed = !reflect.DeepEqual(before.Services, record.Services)
	if !changed && slices.Equal(before.Wanted, record.Wanted) || !found && len(record.Services) == 0 {
		return record, false, nil
	}
	if request.Action == service.WishStatus {
		return record, false, nil // looking changes nothing
	}
	record.Version = sandbox.RecordVersion
	return record, changed, p.store.SaveRecord(p.record.ID, store.ServicesFile, record)
}

// defineServices puts the definitions of the configuration into a record. A
// service that was not there before is wanted unless it says otherwise.
func defineServices(record *service.Record, c config.Config) error {
	if err := service.Check(c.Container.Services); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, spec := range record.Services {
		known[spec.Name] = true
	}
	record.Services = c.Container.Services
	for _, spec := range record.Services {
		if named := spec.Ready.Named; named != "" && !slices.ContainsFunc(c.Container.Ports, func(p config.Port) bool { return p.Name == named }) {
			return fault.New(fault.Invalid, "cannot run service %q: its port %q is not in container.ports", spec.Name, named)
		}
		if !known[spec.Name] && spec.Autostart {
			record.Wanted = append(record.Wanted, spec.Name)
		}
	}
	record.Wanted = slices.DeleteFunc(record.Wanted, func(name string) bool {
		return !slices.ContainsFunc(record.Services, func(s service.Spec) bool { return s.Name == name })
	})
	slices.Sort(record.Wanted)
	return nil
}

// arrange records which services and ports this start of the sandbox has; the
// keeper reads it. In a new sandbox no service is wanted before it is set up.
func (e *Engine) arrange(ctx context.Context, p *place) error {
	id := p.record.ID
	var ports forward.Record
	found, err := e.side(p, store.PortsFile, &ports)
	if err != nil {
		return err
	}
	if found || len(p.config.Container.Ports) > 0 {
		var configured []forward.Port
		for _, port := range p.config.Container.Ports {
			configured = append(configured, forward.Port{Name: port.Name, Inside: port.Inside, Fixed: port.Inside != 0})
		}
		ports.Update(p.config.Container.PortsListen, configured)
		ports.Version = sandbox.RecordVersion
		if err := p.store.SaveRecord(id, store.PortsFile, ports); err != nil {
			return err
		}
	}
	if len(p.config.Container.Services) == 0 {
		if _, err := os.Stat(p.path(store.ServicesFile)); err != nil {
			return nil // there were none before either
		}
	}
	unlock, err := p.store.Lock(ctx, id, "services")
	if err != nil {
		return err
	}
	defer unlock()
	var services service.Record
	if _, err := e.side(p, store.ServicesFile, &services); err != nil {
		return err
	}
	if err := defineServices(&services, p.config); err != nil {
		return err
	}
	if p.record.State == sandbox.Creating {
		services.Wanted = nil
	}
	services.Version = sandbox.RecordVersion
	return p.store.SaveRecord(id, store.ServicesFile, services)
}

// startServices starts the services of a sandbox that has just been set up, and
// does not wait for them.
func (e *Engine) startServices(ctx context.Context, p *place) error {
	var record service.Record
	unlock, err := p.store.Lock(ctx, p.record.ID, "services")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := e.side(p, store.ServicesFile, &record); err != nil {
		return err
	}
	for _, spec := range record.Services {
		if !spec.Autostart {
			continue
		}
		for _, name := range service.WithNeeds(record.Services, spec.Name) {
			if !slices.Contains(record.Wanted, name) {
				record.Wanted = append(record.Wanted, name)
			}
		}
	}
	slices.Sort(record.Wanted)
	if err := p.store.SaveRecord(p.record.ID, store.ServicesFile, record); err != nil {
		return err
	}
	return p.tellKeeper(ctx, keeper.OpServices)
}

// idle is the state of services in a sandbox that does not run, or is paused.
func idle(record service.Record, names []string, of sandbox.State) []ServiceStatus {
	list := []ServiceStatus{}
	order, _ := service.Order(record.Services) // checked before it was recorded
	for _, name := range order {
		if len(names) == 0 || slices.Contains(names, name) {
			one := ServiceStatus{Name: name, State: service.Stopped, Wanted: slices.Contains(record.Wanted, name)}
			if one.Wanted && of == sandbox.Paused {
				one.State = service.Paused
			}
			list = append(list, one)
		}
	}
	return list
}

// services is the part of Status about services; nil without any.
func (e *Engine) services(ctx context.Context, p *place, state sandbox.State) ([]ServiceStatus, error) {
	var record service.Record
	if _, err := e.side(p, store.ServicesFile, &record); err != nil || len(record.Services) == 0 {
		return []ServiceStatus{}, err
	}
	if state == sandbox.Running {
		if stream, err := p.dial(ctx); err == nil {
			defer stream.Close()
			return wire.Services(ctx, stream, wire.ServiceOrder{Action: service.WishStatus})
		}
	}
	return idle(record, nil, state), nil
}
