package wire

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// Configure tells the guest what belongs to this run of the sandbox. It may be
// sent any number of times; the last one counts.
type Configure struct {
	Env      []string       `json:"env"`      // K=V, for every command and service that starts from now on
	Services []service.Spec `json:"services"` // all of them; one that is missing is stopped
	Wanted   []string       `json:"wanted"`   // run these, stop the others
}

// ServiceOrder is a wish about services. Without names it means all of them.
type ServiceOrder struct {
	Action service.Wish `json:"action"`
	Names  []string     `json:"names,omitempty"`
	Wait   bool         `json:"wait,omitempty"` // answer once nothing more is about to change
}

// ServiceList is the result of OpService: the services that were named, in
// the order of starting.
type ServiceList struct {
	Services []service.Status `json:"services"`
}

// LogQuery asks for the journal of one service. Offsets count everything that
// the service has ever printed and stay valid.
type LogQuery struct {
	Service string    `json:"service"`
	From    int64     `json:"from,omitempty"` // offset; below 0: by Tail and Since
	Tail    int       `json:"tail,omitempty"` // lines; below 0: all
	Since   time.Time `json:"since,omitzero"`
	Limit   int       `json:"limit,omitempty"`  // lines; 0: no limit
	Follow  bool      `json:"follow,omitempty"` // go on until the stream closes
}

// LogLine is one line that a service printed, or its supervisor. The text is
// untrusted, and may hold anything that a terminal obeys.
type LogLine struct {
	Service string    `json:"service"`
	Time    time.Time `json:"time,omitzero"`
	Own     bool      `json:"supervisor,omitempty"` // by the supervisor
	Text    string    `json:"text"`
	Next    int64     `json:"next"` // offset of the line after it
}

// LogLines is the payload of one KindStdout frame of OpLogs.
type LogLines []LogLine

// LogEnd is the result of OpLogs.
type LogEnd struct {
	Next int64 `json:"next"` // where to go on
	More bool  `json:"more"` // Limit was reached
}

// Set hands the guest its configuration.
func Set(ctx context.Context, s Stream, c Configure) error {
	return call(ctx, s, Request{Op: OpConfigure, Configure: &c}, nil, nil, &Empty{})
}

// Services carries out an order and returns the services that it named.
func Services(ctx context.Context, s Stream, order ServiceOrder) ([]service.Status, error) {
	var list ServiceList
	if err := call(ctx, s, Request{Op: OpService, Service: &order}, nil, nil, &list); err != nil {
		return nil, err
	}
	if len(list.Services) > service.MaxServices {
		return nil, fault.New(fault.Unavailable, "cannot use a list of %d services", len(list.Services))
	}
	for i := range list.Services {
		if err := checkStatus(&list.Services[i]); err != nil {
			return nil, err
		}
	}
	return list.Services, nil
}

// checkStatus refuses a status that no guest of ours sends, and cleans its texts.
func checkStatus(status *service.Status) error {
	if !service.ValidName(status.Name) || !slices.Contains(service.States(), status.State) {
		return fault.New(fault.Unavailable, "cannot use what the sandbox says of its services")
	}
	status.Problem = printable(status.Problem)
	if status.Last != nil {
		status.Last.Signal = printable(status.Last.Signal)
	}
	return nil
}

// WatchServices reports every service that comes to a state in which it stays
// for a while, until ctx or the stream ends.
func WatchServices(ctx context.Context, s Stream, report func(service.Status)) error {
	return call(ctx, s, Request{Op: OpWatch}, nil, watchSink(report), &Empty{})
}

// watchSink takes the frames of OpWatch: each Write is one of them.
type watchSink func(service.Status)

func (w watchSink) Write(payload []byte) (int, error) {
	var status service.Status
	if err := decode(payload, &status); err != nil {
		return 0, err
	}
	if err := checkStatus(&status); err != nil {
		return 0, err
	}
	w(status)
	return len(payload), nil
}

// Logs hands the lines of a journal to report until there are no more, with
// Follow until ctx ends. An error from report ends it too.
func Logs(ctx context.Context, s Stream, query LogQuery, report func(LogLine) error) (LogEnd, error) {
	var end LogEnd
	lines := logSink{service: query.Service, report: report}
	err := call(ctx, s, Request{Op: OpLogs, Logs: &query}, nil, &lines, &end)
	return end, err
}

// logSink takes the frames of OpLogs: each Write is one of them.
type logSink struct {
	service string
	report  func(LogLine) error
}

func (l *logSink) Write(payload []byte) (int, error) {
	var lines LogLines
	if err := json.Unmarshal(payload, &lines); err != nil {
		return 0, fault.Wrap(fault.Unavailable, err, "cannot understand the sandbox's log")
	}
	for _, line := range lines {
		line.Service = l.service // not the guest's to say
		if err := l.report(line); err != nil {
			return 0, err
		}
	}
	return len(payload), nil
}

// Forward connects s to a port inside. Afterwards it carries the bare bytes of
// that connection. A port without a listener is fault.Unavailable.
func Forward(ctx context.Context, s Stream, port uint16) error {
	return call(ctx, s, Request{Op: OpForward, Port: port}, nil, nil, &Empty{})
}

// Files makes s speak SFTP afterwards, with the sandbox as the server. A guest
// that cannot do so is fault.Unsupported.
func Files(ctx context.Context, s Stream) error {
	return call(ctx, s, Request{Op: OpFiles}, nil, nil, &Empty{})
}
