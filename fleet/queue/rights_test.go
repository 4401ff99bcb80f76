package queue_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/fleet/engine"
	"coder/fleet/queue"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// own is a server started from the printed configuration, as somebody who runs one
// would, with a fleet on it.
func own(t *testing.T) (dir string, link engine.Link) {
	t.Helper()
	dir = t.TempDir()
	text := engine.Config()
	for _, r := range []engine.Role{engine.Admin, engine.Worker, engine.Person} {
		if err := os.WriteFile(engine.TokenFile(dir, r), []byte("pass-"+string(r)), 0o600); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "password: "+strings.ToUpper(string(r)), `password: "pass-`+string(r)+`"`)
	}
	conf := filepath.Join(dir, "nats.conf")
	text += fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q }\n", dir)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	link = engine.Link{URL: "nats://" + s.Addr().String(), Role: engine.Admin, TokenFile: engine.TokenFile(dir, engine.Admin)}
	_, js := dial(t, link)
	if err := queue.Provision(t.Context(), js, queue.Settings{Lease: time.Minute, MaxQueue: 10}, key); err != nil {
		t.Fatal(err)
	}
	return dir, link
}

// servers runs a test on a server of ours and on one from the printed configuration.
func servers(t *testing.T, test func(t *testing.T, dir string, link engine.Link)) {
	t.Run("ours", func(t *testing.T) {
		dir, link := fleet(t, queue.Settings{MaxQueue: 10})
		test(t, dir, link)
	})
	t.Run("printed", func(t *testing.T) {
		dir, link := own(t)
		test(t, dir, link)
	})
}

// raw is a connection in a role that keeps what the server refuses.
func raw(t *testing.T, dir string, l engine.Link, r engine.Role) (c *nats.Conn, refused chan string) {
	t.Helper()
	l.Role, l.TokenFile = r, engine.TokenFile(dir, r)
	c, _, err := l.Dial("raw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	refused = make(chan string, 100)
	c.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() })
	return c, refused
}

// after is what the server refused of what was sent so far: refusals come in the
// order of what is refused, and the last one is of a subject that nobody may use.
func after(t *testing.T, c *nats.Conn, refused chan string) (all []string) {
	t.Helper()
	if err := c.Publish("last", nil); err != nil {
		t.Fatal(err)
	}
	for s := range refused {
		if strings.Contains(s, `Publish to "last"`) {
			return all
		}
		all = append(all, s)
	}
	return all
}

// holds is how many messages each stream of the fleet holds, and the last of each.
func holds(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var b strings.Builder
	names := []string{}
	for info := range js.ListStreams(t.Context()).Info() {
		names = append(names, fmt.Sprintf("%s %d %d", info.Config.Name, info.State.Msgs, info.State.LastSeq))
	}
	slices.Sort(names)
	fmt.Fprint(&b, names)
	return b.String()
}

// filled puts something into every stream, as the admin.
func filled(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	for _, subject := range []string{"coder.log.x", "coder.session.x", "coder.file.x.r.k.0", "coder.job.x", "coder.request.x", "$KV.coder-task.x", "$KV.coder-people.x", "$KV.coder-worker.x", "$KV.coder-lease.x"} {
		if _, err := js.Publish(t.Context(), subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
}

// The table is what the server does: each subject of it is let through for the role
// that it names and those above, and for nobody below.
func TestTheTableOfRightsIsWhatTheServerDoes(t *testing.T) {
	servers(t, func(t *testing.T, dir string, link engine.Link) {
		for _, r := range []engine.Role{engine.Worker, engine.Person} {
			c, refused := raw(t, dir, link, r)
			for _, right := range engine.Rights() {
				subject := engine.Local(r, strings.NewReplacer("*", "z", ">", "z").Replace(right.Subject))
				may := r == engine.Worker || right.Role == engine.Person
				if err := c.Publish(subject, []byte("null")); err != nil {
					t.Fatal(err)
				}
				if got := after(t, c, refused); (len(got) == 0) != may {
					t.Errorf("%s publishes to %s: refused %v, want allowed %v", r, subject, got, may)
				}
			}
		}
	})
}

// What is not in the table is refused to persons and workers, and changes nothing:
// above all what deletes.
func TestWhatNoRowNamesIsRefused(t *testing.T) {
	streams := []string{"KV_coder-task", "KV_coder-fleet", "KV_coder-lease", "KV_coder-worker", "KV_coder-people", "coder-job", "coder-file", "coder-log", "coder-session", "coder-request"}
	var subjects []string
	for _, s := range streams {
		for _, api := range []string{"PURGE", "DELETE", "UPDATE", "CREATE", "SNAPSHOT", "RESTORE", "MSG.DELETE", "PEER.REMOVE", "LEADER.STEPDOWN"} {
			subjects = append(subjects, "$JS.API.STREAM."+api+"."+s)
		}
		subjects = append(subjects, "$JS.API.CONSUMER.CREATE."+s, "$JS.API.CONSUMER.CREATE."+s+".c", "$JS.API.CONSUMER.CREATE."+s+".c.f", "$JS.API.CONSUMER.DURABLE.CREATE."+s+".c",
			"$JS.API.CONSUMER.DELETE."+s+".workers", "$JS.API.CONSUMER.PAUSE."+s+".workers", "$JS.API.CONSUMER.RESET."+s+".workers", "$JS.API.CONSUMER.LEADER.STEPDOWN."+s+".workers", "$JS.FC."+s+".c.x")
	}
	subjects = append(subjects, "$JS.API.INFO", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.SERVER.REMOVE", "$JS.API.ACCOUNT.PURGE.$G", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST",
		"$SYS.REQ.SERVER.PING", "$KV.coder-people.eve", "$KV.coder-fleet.settings", "$O.coder-file.M.x", "$O.coder-file.C.x", "_INBOX.x", "_INBOX_admin.x", "_INBOX_worker.x", "_INBOX_person.x", "other")
	persons := []string{"coder.log.x", "coder.session.x", "coder.file.x.r.k.0", "$KV.coder-task.x", "$KV.coder-lease.x", "$KV.coder-worker.x", "$KV.coder-fleet.drain.w", "$JS.API.CONSUMER.MSG.NEXT.coder-job.workers", "$JS.ACK.coder-job.workers.1.1.1.1.1"}
	servers(t, func(t *testing.T, dir string, link engine.Link) {
		_, js := dial(t, link)
		filled(t, js)
		before := holds(t, js)
		for _, r := range []engine.Role{engine.Worker, engine.Person} {
			all := subjects
			if r == engine.Person {
				all = slices.Concat(subjects, persons)
			}
			c, refused := raw(t, dir, link, r)
			for _, subject := range slices.Clone(all) {
				if own := engine.Local(r, subject); own != subject {
					all = append(all, own)
				}
			}
			for _, subject := range all {
				if err := c.Publish(subject, nil); err != nil {
					t.Fatal(err)
				}
			}
			got := after(t, c, refused)
			for _, subject := range all {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, `Publish to "`+subject+`"`) }) {
					t.Errorf("a %s may publish to %s", r, subject)
				}
			}
			for _, subject := range []string{">", "*", "coder.>", "coder.log.*", "$KV.>", "$JS.>", "$SYS.>", "_INBOX.>", "_INBOX_admin.>"} {
				if _, err := c.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				if got := after(t, c, refused); len(got) == 0 {
					t.Errorf("a %s may subscribe to %s", r, subject)
				}
			}
		}
		if now := holds(t, js); now != before {
			t.Errorf("the streams hold\n%s\nand held\n%s", now, before)
		}
	})
}

// A reply goes to the subject that a request names. It leads to no stream, and is no
// request of its own, whatever that subject is.
func TestARepliesSubjectLeadsNowhere(t *testing.T) {
	servers(t, func(t *testing.T, dir string, link engine.Link) {
		_, js := dial(t, link)
		filled(t, js)
		if _, err := js.Publish(t.Context(), "coder.request.empty", nil); err != nil {
			t.Fatal(err)
		}
		before := holds(t, js)
		replies := []string{"$KV.coder-fleet.settings", "$KV.coder-people.eve", "$JS.API.STREAM.DELETE.coder-log"}
		for _, s := range []string{"KV_coder-task", "KV_coder-fleet", "KV_coder-lease", "KV_coder-worker", "coder-job", "coder-file", "coder-log", "coder-request"} {
			replies = append(replies, "$JS.API.STREAM.PURGE."+s)
		}
		for r, more := range map[engine.Role][]string{engine.Worker: nil, engine.Person: {"$KV.coder-task.x", "$KV.coder-lease.x", "coder.log.x", "coder.session.x", "coder.file.x.r.k.0"}} {
			c, _ := raw(t, dir, link, r)
			for _, reply := range slices.Concat(replies, more) {
				for subject, body := range map[string]string{
					"$JS.API.STREAM.INFO.coder-job":           "",
					"$JS.API.STREAM.MSG.GET.coder-request":    `{"last_by_subj":"coder.request.empty"}`,
					"$JS.API.DIRECT.GET.KV_coder-worker":      `{"last_by_subj":"$KV.coder-worker.x"}`,
					"$JS.API.CONSUMER.INFO.coder-job.workers": "",
				} {
					for _, reply := range []string{reply, engine.Local(r, reply)} {
						if err := c.PublishRequest(engine.Local(r, subject), reply, []byte(body)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Request(engine.Local(r, "$JS.API.STREAM.INFO.coder-job"), nil, time.Minute); err != nil { // behind all of them
				t.Fatal(err)
			}
		}
		if now := holds(t, js); now != before {
			t.Errorf("the streams hold\n%s\nand held\n%s", now, before)
		}
	})
}

// No header makes of a message that may be written one that removes others; a request
// is written once.
func TestNoHeaderRemovesWhatOthersWrote(t *testing.T) {
	servers(t, func(t *testing.T, dir string, link engine.Link) {
		_, js := dial(t, link)
		filled(t, js)
		for r, subjects := range map[engine.Role][]string{
			engine.Person: {"coder.job.y", "coder.request.y"},
			engine.Worker: {"coder.log.y", "coder.session.y", "coder.file.y.r.k.0", "$KV.coder-task.y", "$KV.coder-lease.y", "$KV.coder-worker.y", "$KV.coder-fleet.drain.y"},
		} {
			_, own := as(t, dir, link, r)
			for _, subject := range subjects {
				for header, value := range map[string]string{"Nats-Rollup": "all", "Nats-Schedule": "@every 1s", "Nats-TTL": "1s"} {
					m := nats.NewMsg(engine.Local(r, subject))
					m.Header.Set(header, value)
					if _, err := own.PublishMsg(t.Context(), m); err == nil {
						t.Errorf("a %s may publish %s with %s", r, subject, header)
					}
				}
			}
		}
		_, person := as(t, dir, link, engine.Person)
		for _, marker := range []string{"", "DEL", "PURGE"} {
			m := nats.NewMsg("coder.request.x")
			m.Header.Set("KV-Operation", marker)
			if _, err := person.PublishMsg(t.Context(), m); err == nil {
				t.Errorf("a request is overwritten (%q)", marker)
			}
		}
	})
}

// forge writes an entry as somebody would whom no server holds back.
func forge(t *testing.T, js jetstream.JetStream, id, value string) {
	t.Helper()
	if _, err := js.Publish(t.Context(), "$KV.coder-task."+id, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// An entry that nobody vouches for, or that cannot be read, is skipped and named, and
// keeps nobody from the others.
func TestBrokenEntriesAreSkippedAndNamed(t *testing.T) {
	dir, link := fleet(t, queue.Settings{MaxQueue: 100})
	w, _ := as(t, dir, link, engine.Worker)
	p, pjs := as(t, dir, link, engine.Person)
	_, admin := dial(t, link)
	done := func(id string) string {
		t.Helper()
		if _, err := w.Ensure(t.Context(), queue.Job{Task: queue.Task{ID: id, Spec: queue.Spec{Prompt: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Change(t.Context(), id, func(t *queue.Task) error {
			t.Status, t.Result = queue.Done, &queue.Result{Branch: queue.Branch(id), Check: "make test", Verified: true}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		kv, err := admin.KeyValue(t.Context(), "coder-task")
		if err != nil {
			t.Fatal(err)
		}
		e, err := kv.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return string(e.Value())
	}
	good := done("good")
	forged := string(must(json.Marshal(queue.Task{ID: "f", Status: queue.Done, Result: &queue.Result{Answer: "FORGED", Check: "make test", Verified: true}})))
	for id, value := range map[string]string{
		"nojson": "everything", "empty": "", "copied": good, "changed": strings.Replace(done("changed"), "make test", "make fest", 1),
		"status": `{"id":"status","status":"perfect"}`, "running": `{"id":"running","status":"running"}`, "branch": `{"id":"branch","status":"done","result":{"branch":"*"}}`,
		"main": `{"id":"main","status":"done","result":{"branch":"main"}}`, "array": "[]", "wrongseal": "AAAA\n" + forged, "other": forged, "big": "{" + strings.Repeat(" ", 9<<20) + "}",
		"-dash": `{"id":"-dash","status":"done"}`,
	} {
		forge(t, admin, id, value)
		task, err := p.Get(t.Context(), id)
		if id != "-dash" && (err != nil || task.Status != queue.Broken || task.ID != id || task.Result != nil || !strings.Contains(task.Reason, "skipped")) {
			t.Errorf("%s is read as %+v, %v", id, task, err)
		}
		if _, err := w.Change(t.Context(), id, func(*queue.Task) error { return nil }); err == nil {
			t.Errorf("%s is changed, and so sealed", id)
		}
	}
	forge(t, admin, "older", `{"id":"older","status":"done","result":{"check":"make test","verified":true}}`)
	if task, err := p.Get(t.Context(), "older"); err != nil || !task.Unsealed || !strings.Contains(task.Reason, "not sealed") || task.Result.Verified {
		t.Errorf("of an earlier release: %+v, %v", task, err)
	}
	for _, request := range []string{"coder.request.evil", "coder.request.odd.cancel"} { // a person's own
		m := nats.NewMsg(request)
		m.Data = []byte("\x1b[2J no request")
		m.Header.Set("Nats-Sequence", "x")
		m.Header.Set("Status", "204")
		if _, err := pjs.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, bucket := range []string{"worker", "people"} {
		if _, err := admin.Publish(t.Context(), "$KV.coder-"+bucket+".bad", []byte("everything")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Report(t.Context(), queue.WorkerState{Name: "w1", Slots: 1, State: "ready"}); err != nil {
		t.Fatal(err)
	}
	s, err := p.Standing(t.Context())
	if err != nil || s.Counts[queue.Broken] != 14 || s.Counts[queue.Done] != 2 || len(s.Workers) != 2 {
		t.Errorf("the whole is %+v, %v", s.Counts, err)
	}
	for _, task := range s.Tasks {
		if task.ID == "evil" && task.Status != queue.Broken || task.ID == "good" && (task.Status != queue.Done || task.Unsealed || !task.Result.Verified) {
			t.Errorf("%+v", task)
		}
	}
	a, _ := as(t, dir, link, engine.Admin)
	for _, task := range s.Tasks {
		if task.Status == queue.Broken {
			if err := a.Forget(t.Context(), task); err != nil {
				t.Errorf("%s cannot be removed: %v", task.ID, err)
			}
		}
	}
	if s, err := p.Standing(t.Context()); err != nil || s.Counts[queue.Broken] != 0 || s.Counts[queue.Done] != 2 {
		t.Errorf("after that it is %+v, %v", s.Counts, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
