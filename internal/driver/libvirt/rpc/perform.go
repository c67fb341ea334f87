package rpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

// perform carries out a request on one connection. Its errors are libvirt's.
func perform(conn Connection, q libvirt.Request) (libvirt.Answer, error) {
	switch q.Op {
	case libvirt.OpVersion:
		version, err := conn.ConnectGetLibVersion()
		return libvirt.Answer{Text: fmt.Sprintf("%d.%d.%d", version/1e6, version/1e3%1e3, version%1e3)}, err
	case libvirt.OpDefine:
		_, err := conn.DomainDefineXMLFlags(q.XML, golibvirt.DomainDefineValidate)
		return libvirt.Answer{}, err
	}
	id, err := uuid(q.UUID)
	if err != nil {
		return libvirt.Answer{}, err
	}
	domain, err := conn.DomainLookupByUUID(id)
	if golibvirt.IsNotFound(err) && (q.Op == libvirt.OpState || q.Op == libvirt.OpUndefine) {
		return libvirt.Answer{State: libvirt.Lost}, nil
	}
	if err != nil {
		return libvirt.Answer{}, err
	}
	return onDomain(conn, domain, q)
}

// onDomain carries out a request about an existing domain. One that is already
// satisfied succeeds.
func onDomain(conn Connection, domain golibvirt.Domain, q libvirt.Request) (libvirt.Answer, error) {
	state, err := stateOf(conn, domain)
	if err != nil {
		return state, err
	}
	switch q.Op {
	case libvirt.OpState:
		return state, nil
	case libvirt.OpStart:
		if state.State != libvirt.Runs {
			_, err = conn.DomainCreateWithFlags(domain, 0)
		}
	case libvirt.OpSuspend:
		if state.State != libvirt.Paused {
			err = conn.DomainSuspend(domain)
		}
	case libvirt.OpResume:
		if state.State != libvirt.Runs {
			err = conn.DomainResume(domain)
		}
	case libvirt.OpStop:
		if state.State != libvirt.Off {
			err = conn.DomainDestroyFlags(domain, golibvirt.DomainDestroyGraceful)
		}
	case libvirt.OpUndefine:
		err = conn.DomainUndefineFlags(domain, golibvirt.DomainUndefineManagedSave|golibvirt.DomainUndefineSnapshotsMetadata|golibvirt.DomainUndefineNvram)
	case libvirt.OpMeasure:
		measures, err := measure(conn, domain)
		state.Measures = measures
		return state, err
	default:
		return onSnapshot(conn, domain, q)
	}
	return libvirt.Answer{}, err
}

// onSnapshot carries out a request about a snapshot of a domain.
func onSnapshot(conn Connection, domain golibvirt.Domain, q libvirt.Request) (answer libvirt.Answer, err error) {
	var snapshot golibvirt.DomainSnapshot
	switch q.Op {
	case libvirt.OpSnapshot:
		snapshot, err = conn.DomainSnapshotCreateXML(domain, "<domainsnapshot><name>"+q.Name+"</name></domainsnapshot>", 0)
		if err == nil {
			answer.Text, err = conn.DomainSnapshotGetXMLDesc(snapshot, 0)
		}
		return answer, err
	case libvirt.OpRedefine:
		_, err = conn.DomainSnapshotCreateXML(domain, q.XML, uint32(golibvirt.DomainSnapshotCreateRedefine))
		return answer, err
	case libvirt.OpRevert, libvirt.OpRevertOff, libvirt.OpForget:
		snapshot, err = conn.DomainSnapshotLookupByName(domain, q.Name, 0)
	default:
		err = errors.New("there is no such request: " + string(q.Op))
	}
	switch {
	case q.Op == libvirt.OpForget && isCode(err, golibvirt.ErrNoDomainSnapshot):
		return answer, nil
	case err != nil:
		return answer, err
	case q.Op == libvirt.OpForget:
		err = conn.DomainSnapshotDelete(snapshot, 0)
	case q.Op == libvirt.OpRevertOff:
		err = conn.DomainRevertToSnapshot(snapshot, uint32(golibvirt.DomainSnapshotRevertForce))
	default:
		err = conn.DomainRevertToSnapshot(snapshot, uint32(golibvirt.DomainSnapshotRevertRunning|golibvirt.DomainSnapshotRevertForce))
	}
	return answer, err
}

// isCode reports whether an error is libvirt's with that number.
func isCode(err error, code golibvirt.ErrorNumber) bool {
	var said golibvirt.Error
	return errors.As(err, &said) && golibvirt.ErrorNumber(said.Code) == code
}

// stateOf translates libvirt's states, and the reasons that callers act on.
func stateOf(conn Connection, domain golibvirt.Domain) (libvirt.Answer, error) {
	state, reason, err := conn.DomainGetState(domain, 0)
	if err != nil {
		return libvirt.Answer{}, err
	}
	answer := libvirt.Answer{State: libvirt.Runs, Reason: fmt.Sprint("reason ", reason)}
	var words []string
	switch golibvirt.DomainState(state) {
	case golibvirt.DomainPaused, golibvirt.DomainPmsuspended:
		answer.State = libvirt.Paused
		words = []string{"unknown", "user", "migration", "save", "dump", "ioerror", "watchdog", "from snapshot", "shutting down", "snapshot", "crashed", "starting up"}
	case golibvirt.DomainShutoff, golibvirt.DomainShutdown, golibvirt.DomainCrashed, golibvirt.DomainNostate:
		answer.State = libvirt.Off
		words = []string{"unknown", "shutdown", "destroyed", "crashed", "migrated", "saved", "failed", "from snapshot", "daemon"}
	default:
		words = []string{"unknown", "booted", "migrated", "restored", "from snapshot", "unpaused", "migration canceled", "save canceled", "woken up", "crashed"}
	}
	if reason >= 0 && int(reason) < len(words) {
		answer.Reason = words[reason]
	}
	return answer, nil
}

// measure reads libvirt's counters. Those that a guest without a balloon driver
// does not report are not measured.
func measure(conn Connection, domain golibvirt.Domain) (*libvirt.Measures, error) {
	m := &libvirt.Measures{Memory: -1, Balloon: -1, Used: -1, Read: -1, Written: -1}
	_, _, _, _, cpu, err := conn.DomainGetInfo(domain)
	if err != nil {
		return nil, err
	}
	m.CPU = int64(cpu)
	stats, err := conn.DomainMemoryStats(domain, uint32(golibvirt.DomainMemoryStatNr), 0)
	if err != nil {
		return nil, err
	}
	available, usable := int64(-1), int64(-1)
	for _, stat := range stats {
		bytes := int64(stat.Val) << 10
		switch golibvirt.DomainMemoryStatTags(stat.Tag) {
		case golibvirt.DomainMemoryStatRss:
			m.Memory = bytes
		case golibvirt.DomainMemoryStatActualBalloon:
			m.Balloon = bytes
		case golibvirt.DomainMemoryStatAvailable:
			available = bytes
		case golibvirt.DomainMemoryStatUsable:
			usable = bytes
		}
	}
	if available >= 0 && usable >= 0 {
		m.Used = available - usable
	}
	_, read, _, written, _, err := conn.DomainBlockStats(domain, "vdb")
	if err != nil {
		return nil, err
	}
	m.Read, m.Written = read, written
	return m, nil
}

func uuid(text string) (golibvirt.UUID, error) {
	var id golibvirt.UUID
	data, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(data) != len(id) {
		return id, fmt.Errorf("%q is not the UUID of a domain", text)
	}
	copy(id[:], data)
	return id, nil
}
