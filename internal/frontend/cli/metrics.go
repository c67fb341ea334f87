package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type metricsOptions struct {
	console *console
	samples func(ctx context.Context, dir string, all, disk bool) ([]engine.Sample, error)

	dir    string
	all    bool
	disk   bool
	listen string
	open   bool
	json   bool
}

func newMetrics(s *session) *cobra.Command {
	o := &metricsOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "metrics [--listen ADDR]",
		Short: "Print what sandboxes use, for Prometheus",
		Long: `Print what the sandboxes of this repository use and have done, in the text format
of Prometheus: for a textfile collector, or with --listen for scraping at
/metrics. A Grafana dashboard for it is in docs/grafana.json.`,
		Example: `  litterbox metrics --all
  litterbox metrics --all --listen 127.0.0.1:9464`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.samples, o.dir = e.Samples, dir
			return runMetrics(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "include all repositories")
	cmd.Flags().BoolVar(&o.disk, "disk", false, "also count what each takes on the disk, which takes longer")
	cmd.Flags().StringVar(&o.listen, "listen", "", "serve them at `ADDR` until interrupted")
	cmd.Flags().BoolVar(&o.open, "listen-anywhere", false, "let --listen take an address that other machines can reach")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array instead")
	return cmd
}

func runMetrics(ctx context.Context, o *metricsOptions) error {
	if o.listen != "" {
		return serveMetrics(ctx, o)
	}
	samples, err := o.samples(ctx, o.dir, o.all, o.disk)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(samples))
	}
	return o.console.print("%s", prometheus(samples, o.console.now()))
}

// serveMetrics answers scrapes until ctx ends. Names and repositories are in the
// answer, so only this machine gets it unless the human says so.
func serveMetrics(ctx context.Context, o *metricsOptions) error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot listen at %q", o.listen).WithHint("litterbox metrics --listen 127.0.0.1:9464")
	}
	if ip := net.ParseIP(host); !o.open && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fault.New(fault.Denied, "cannot listen at %q: other machines could read the names of your sandboxes there", o.listen).
			WithHint("litterbox metrics --listen 127.0.0.1:9464, or add --listen-anywhere")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot listen at %q", o.listen)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		// A web page can make its own name resolve to loopback (DNS rebinding).
		if name, _, err := net.SplitHostPort(r.Host); err != nil || name != "localhost" && net.ParseIP(name) == nil && !o.open {
			http.Error(w, "ask for this by address", http.StatusMisdirectedRequest)
			return
		}
		samples, err := o.samples(r.Context(), o.dir, o.all, o.disk)
		if err != nil {
			http.Error(w, clean(err.Error()), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(prometheus(samples, o.console.now()))) // the client may be gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	o.console.note("metrics at http://%s/metrics", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fault.Wrap(fault.Unavailable, err, "cannot serve metrics")
	}
	return nil
}
