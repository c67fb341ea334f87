package sandbox

import "time"

// EventVersion is the version of [Event] as JSON. Fields and types are added,
// never renamed; a change that readers would misunderstand raises it.
const EventVersion = 1

// Event is one thing that happened, as a line of the event log. Programs read
// it with `litterbox events --json`.
type Event struct {
	Version    int               `json:"version"`
	Seq        uint64            `json:"seq"` // counts up by one over all sandboxes of a state directory
	Time       time.Time         `json:"time"`
	Type       EventType         `json:"type"`
	Sandbox    string            `json:"sandbox"` // name
	SandboxID  string            `json:"sandbox_id"`
	Repository string            `json:"repository"`
	Cycle      int               `json:"cycle,omitempty"` // of that sandbox
	Data       map[string]string `json:"data,omitempty"`  // see EventTypes
}

// EventType says what happened, as subject and verb: "sandbox.created".
type EventType string

// The events. [EventTypes] documents their data.
const (
	EventCreated         EventType = "sandbox.created"
	EventStarted         EventType = "sandbox.started"
	EventAttached        EventType = "sandbox.attached"
	EventStopped         EventType = "sandbox.stopped"
	EventLost            EventType = "sandbox.lost"
	EventUnreachable     EventType = "sandbox.unreachable"
	EventReached         EventType = "sandbox.reached"
	EventDeleted         EventType = "sandbox.deleted"
	EventRestored        EventType = "sandbox.restored"
	EventMerged          EventType = "sandbox.merged"
	EventSnapshot        EventType = "snapshot.taken"
	EventReverted        EventType = "snapshot.restored"
	EventForked          EventType = "sandbox.forked"
	EventUpdated         EventType = "sandbox.updated"
	EventPaused          EventType = "sandbox.paused"
	EventResumed         EventType = "sandbox.resumed"
	EventCycleLeasing    EventType = "cycle.leasing"
	EventCyclePreparing  EventType = "cycle.preparing"
	EventCycleExecuting  EventType = "cycle.executing"
	EventCycleProcessing EventType = "cycle.post_processing"
	EventCycleCompleted  EventType = "cycle.completed"
	EventCycleFailed     EventType = "cycle.failed"
	EventIteration       EventType = "iteration.committed"
	EventPolicy          EventType = "network.policy"
	EventRefused         EventType = "network.refused"
	EventLimit           EventType = "limit.reached"
	EventLimits          EventType = "limits.changed"
	EventService         EventType = "service.changed"
	EventSignature       EventType = "ssh.signature"
)

// EventKind documents one type of event.
type EventKind struct {
	Type    EventType
	Meaning string
	Data    []string // "key: meaning", in the order of the documentation
}

// EventTypes lists every type of event with its data.
func EventTypes() []EventKind {
	return []EventKind{
		{EventCreated, "a sandbox was created", []string{"branch: its branch", "base: the commit it starts from"}},
		{EventStarted, "it was started and its guest answers", []string{"lease: id of the new lease"}},
		{EventAttached, "a new keeper took over a sandbox that was still running", []string{"lease: id of the lease"}},
		{EventStopped, "its processes were shut down cleanly", nil},
		{EventLost, "it ended without being asked to", []string{"lease: id of the lost lease", "machine: state of its virtual machine, and the hypervisor's reason"}},
		{EventUnreachable, "it does not answer; litterbox keeps dialling", []string{"since: when the wire was cut"}},
		{EventReached, "it answers again", []string{"since: when the wire had been cut"}},
		{EventDeleted, "a sandbox was deleted", []string{"tip: the last commit of its branch", "trash: the ref that keeps it"}},
		{EventRestored, "a deleted sandbox was restored with its files", []string{"tip: the last commit of its branch"}},
		{EventSnapshot, "a snapshot of its files was taken", []string{"snapshot: its short name", "label: what it was called", "kind: why it was taken", "commit: where the branch stood"}},
		{EventReverted, "its files are those of a snapshot or an iteration again", []string{"snapshot: its short name, or the iteration's number", "commit: where the branch stands"}},
		{EventForked, "another sandbox began with its files", []string{"into: the new sandbox", "commit: where both branches stand"}},
		{EventMerged, "its branch was merged by apply or merge", []string{"tip: the commit that was merged"}},
		{EventUpdated, "its branch was brought to a newer base", []string{"onto: the new base", "commit: where the branch stands", "conflicts: how many files hold conflict markers"}},
		{EventPaused, "its processes were frozen", []string{"reason: why", "machine: state of its virtual machine, and the hypervisor's reason"}},
		{EventResumed, "its processes go on", []string{"machine: state of its virtual machine, and the hypervisor's reason"}},
		{EventCycleLeasing, "a run waits for the sandbox to be running", []string{"kind: exec, shell, write, …", "command: what it runs"}},
		{EventCyclePreparing, "the sandbox is running; the run is being prepared", nil},
		{EventCycleExecuting, "the command runs", nil},
		{EventCycleProcessing, "the command is over; its work is being committed", nil},
		{EventCycleCompleted, "the run is over", []string{"exit_code: of the command", "timed_out: true when its time was up"}},
		{EventCycleFailed, "the run could not be carried out", []string{"problem: why"}},
		{EventIteration, "a commit was made of what a run changed", []string{"number: of the iteration", "commit: its id", "message: its first line", "changed: how many files"}},
		{EventPolicy, "another policy revision is in force", []string{"revision: its number", "change: what a human typed"}},
		{EventRefused, "a destination was refused for the first time", []string{"host: where to", "port: which port", "method: of the request, where it was seen", "path: of the request, where it was seen", "reason: the rule, or why"}},
		{EventLimits, "limits were changed while it ran", []string{"limits: those that count now"}},
		{EventLimit, "a limit ended something inside, or a budget refused a call of a model", []string{"limit: oom, pids, disk, time or budget", "action: what was done"}},
		{EventSignature, "a program inside asked your ssh-agent for a signature", []string{"purpose: what for", "key: its fingerprint", "verdict: asked, signed or refused", "reason: why; of a question, what answers it"}},
		{EventService, "a service changed its state", []string{"service: its name", "state: its new state", "problem: why it failed"}},
	}
}

// CycleEvent is the event of a cycle that has just entered state; empty for a state
// without one.
func CycleEvent(state CycleState) EventType {
	switch state {
	case Leasing:
		return EventCycleLeasing
	case Preparing:
		return EventCyclePreparing
	case Executing:
		return EventCycleExecuting
	case PostProcessing:
		return EventCycleProcessing
	case Completed:
		return EventCycleCompleted
	case CycleFailed:
		return EventCycleFailed
	}
	return ""
}
