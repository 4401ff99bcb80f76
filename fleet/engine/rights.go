package engine

import (
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Right is one row of the table of rights: a subject that a role may publish to.
// What no row names, only an admin may.
type Right struct {
	Subject string
	Role    Role // the least role: workers may what persons may
	For     string
}

// buckets are those that every member of a fleet reads.
var buckets = []string{"task", "people", "worker", "fleet"}

// Rights is the table of rights. Nothing in it deletes, purges, rolls up, makes or
// changes a stream or a consumer.
func Rights() []Right {
	all := []Right{
		{"coder.job.*", Person, "submit a task, answer a question"},
		{"coder.request.*", Person, "list a submitted task; the subject takes one message"},
		{"coder.request.*.cancel", Person, "cancel a task; the subject takes one message"},
		{"$JS.API.STREAM.MSG.GET.coder-request", Person, "read requests"},
		{"$JS.API.STREAM.MSG.GET.coder-log", Person, "read logs"},
		{"$JS.API.CONSUMER.INFO.coder-job.workers", Person, "count the queue"},
		{"$JS.API.STREAM.MSG.GET.coder-file", Person, "read checkpoints and results"},
		{"$JS.API.DIRECT.GET.OBJ_coder-file", Person, "read files that an earlier release stored"},
		{"$JS.API.DIRECT.GET.OBJ_coder-file.>", Person, "the same"},
	}
	for _, b := range buckets {
		all = append(all,
			Right{"$JS.API.DIRECT.GET.KV_coder-" + b, Person, "read the bucket coder-" + b},
			Right{"$JS.API.DIRECT.GET.KV_coder-" + b + ".>", Person, "the same"})
	}
	for _, s := range []string{
		"coder-job", "coder-request", "coder-log", "coder-session", "coder-file",
		"KV_coder-task", "KV_coder-people", "KV_coder-worker", "KV_coder-fleet", "KV_coder-lease", "OBJ_coder-file",
	} {
		all = append(all, Right{"$JS.API.STREAM.INFO." + s, Person, "open the stream " + s})
	}
	return append(all,
		Right{"coder.log.*", Worker, "append to logs"},
		Right{"coder.session.*", Worker, "save session snapshots"},
		Right{"coder.file.>", Worker, "save checkpoints and results"},
		Right{"$KV.coder-task.*", Worker, "change the state of a task; each value carries the fleet's seal"},
		Right{"$KV.coder-lease.*", Worker, "claim a task"},
		Right{"$KV.coder-worker.*", Worker, "report as a worker"},
		Right{"$KV.coder-fleet.drain.*", Worker, "drain a worker"},
		Right{"$JS.API.CONSUMER.MSG.NEXT.coder-job.workers", Worker, "take a job"},
		Right{"$JS.ACK.coder-job.workers.>", Worker, "finish a job or return it"},
		Right{"$JS.API.DIRECT.GET.KV_coder-lease", Worker, "read leases"},
		Right{"$JS.API.DIRECT.GET.KV_coder-lease.>", Worker, "the same"},
		Right{"$JS.API.STREAM.MSG.GET.coder-session", Worker, "read session snapshots"},
	)
}

// may lists the subjects that a role may publish to.
func may(r Role) (all []string) {
	for _, right := range Rights() {
		if right.Role == Person || right.Role == r {
			all = append(all, right.Subject)
		}
	}
	return all
}

// Local is how a role names a subject of the table in its own account, in which the
// server keeps $JS.API for itself.
func Local(r Role, subject string) string {
	switch {
	case !slices.Contains(limited, r):
		return subject
	case strings.HasPrefix(subject, jetstream.DefaultAPIPrefix):
		return api + strings.TrimPrefix(subject, jetstream.DefaultAPIPrefix)
	case strings.HasPrefix(subject, "$KV."):
		return api + subject
	}
	return subject
}

const api = "coder.api."

// local lists the subjects that a role may publish to, as it names them.
func local(r Role) (all []string) {
	for _, subject := range may(r) {
		all = append(all, Local(r, subject))
	}
	return all
}

// inbox begins the subjects on which a role gets replies.
func inbox(r Role) string { return "_INBOX_" + string(r) }

// limited are the roles with rights of their own.
var limited = []Role{Worker, Person}

// Config is the configuration of a NATS server that one runs oneself, with the
// rights of the table.
//
// Each role has an account. Within one account a server publishes replies, and what
// a push consumer delivers, to any subject that the client names: whoever may read
// could write. A reply to another account stays in that account.
func Config() string {
	var b strings.Builder
	b.WriteString("jetstream { sync_interval: always }\nmax_payload: 16MB\naccounts {\n")
	b.WriteString("  CODER {\n    jetstream: enabled\n    users: [{user: admin, password: ADMIN}]\n")
	b.WriteString("    exports: [\n")
	for _, s := range may(Worker) {
		fmt.Fprintf(&b, "      {service: %q, response_type: stream}\n", s)
	}
	b.WriteString("    ]\n  }\n")
	for _, r := range limited {
		name := strings.ToUpper(string(r))
		fmt.Fprintf(&b, "  %s {\n    imports: [\n", name)
		for _, s := range may(r) {
			fmt.Fprintf(&b, "      {service: {account: CODER, subject: %q}, to: %q}\n", s, Local(r, s))
		}
		fmt.Fprintf(&b, "    ]\n    users: [{user: %s, password: %s, ", r, name)
		fmt.Fprintf(&b, "permissions: {subscribe: %q, publish: [\n", inbox(r)+".>")
		for _, s := range local(r) {
			fmt.Fprintf(&b, "      %q\n", s)
		}
		b.WriteString("    ]}}]\n  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// door lets in who has the token of a role, with the rights of that role.
type door struct {
	keys  map[Role]string
	ready chan struct{} // closed once users is set
	users map[Role]*server.User
}

// open gives each role its account and its rights. JetStream must run by then: a
// server with more than one account does not enable it for the global one.
func (d *door) open(s *server.Server) error {
	all := s.GlobalAccount()
	d.users = map[Role]*server.User{Admin: {Username: string(Admin), Account: all}}
	for _, subject := range may(Worker) {
		if err := all.AddServiceExportWithResponse(subject, server.Streamed, nil); err != nil {
			return err
		}
	}
	for _, r := range limited {
		account, _ := s.LookupOrRegisterAccount(string(r))
		for _, subject := range may(r) {
			if err := account.AddServiceImport(all, Local(r, subject), subject); err != nil {
				return err
			}
		}
		d.users[r] = &server.User{Username: string(r), Account: account, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: local(r)},
			Subscribe: &server.SubjectPermission{Allow: []string{inbox(r) + ".>"}},
		}}
	}
	close(d.ready)
	return nil
}

// Check implements [server.Authentication].
func (d *door) Check(c server.ClientAuthentication) bool {
	select {
	case <-d.ready:
	case <-time.After(patience):
		return false
	}
	o := c.GetOpts()
	role := Role(o.Username)
	key := d.keys[role]
	if d.users[role] == nil || key == "" || subtle.ConstantTimeCompare([]byte(o.Password), []byte(key)) != 1 {
		return false
	}
	c.RegisterUser(d.users[role])
	return true
}
