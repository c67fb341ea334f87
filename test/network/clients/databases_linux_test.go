package clients_test

import (
	"path/filepath"
	"testing"
)

func databaseClients() []client {
	return []client{
		{
			Name: "psql", Needs: []string{"psql", "postgres", "initdb", "pg_isready"}, Want: "1000 rows over TLS",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("sql.outside.example")
				dir := filepath.Join(t.TempDir(), "data")
				outside.Do(t, nil, "initdb", "--no-sync", "--auth=trust", "--username=outside", "--locale=C.UTF-8", "--encoding=UTF8", "-D", dir)
				certificate, key := outside.CertificateFiles(t, h.Name)
				write(t, filepath.Join(dir, "pg_hba.conf"), "hostssl all all 0.0.0.0/0 trust\n")
				p := outside.Start(t, nil, "postgres", "-D", dir, "-F", "-c", "ssl=on", "-c", "ssl_cert_file="+certificate, "-c", "ssl_key_file="+key, "-c", "unix_socket_directories=", "-c", "listen_addresses="+h.V4.String())
				outside.Await(t, h.V4.String()+":5432", p)
				// It listens before it serves.
				outside.Do(t, nil, "sh", "-c", "for i in $(seq 600); do pg_isready -q -h $0 && exit; sleep 0.1; done; exit 1", h.V4.String())
				return []string{h.Name + ":5432"}, `psql -X -q -t -A "host=` + h.Name + ` user=outside dbname=postgres sslmode=require connect_timeout=30" ` +
					`-c "create temp table t as select generate_series(1, 1000) as n" -c "select count(*) || ' rows over ' || (select case when ssl then 'TLS' end from pg_stat_ssl where pid = pg_backend_pid()) from t"`
			},
		},
		{
			Name: "redis", Needs: []string{"redis-cli", "redis-server"}, Want: "OK\nvalue",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("cache.outside.example")
				p := outside.Start(t, nil, "redis-server", "--bind", h.V4.String(), "--port", "6379", "--save", "", "--protected-mode", "no", "--dir", t.TempDir())
				outside.Await(t, h.V4.String()+":6379", p)
				return []string{h.Name + ":6379"}, "redis-cli -h " + h.Name + " -e set key value; redis-cli -h " + h.Name + " -e get key"
			},
		},
	}
}
