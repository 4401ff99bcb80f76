// Package fleetcli is the command line of a fleet: what coder fleet does.
package fleetcli

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/fleet/engine"
	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/fleet/worker"
	"coder/internal/cli"
	"coder/internal/core/message"
	"coder/internal/core/nearest"
	"coder/internal/core/sanitize"
	"coder/internal/host/authkey"
	"coder/internal/host/program"
	"coder/internal/ui/i18n"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// call is one call of the program.
type call struct {
	cli.Env
	words *i18n.Printer
	dir   string // of the fleet
	link  engine.Link
	args  []string // what is left of the command line
	json  bool

	serving serving
	handing handing
	given   given

	conn *nats.Conn
	js   jetstream.JetStream
	*queue.Queue
}

// door starts programs for the repository of the folder here.
func (c *call) door() program.Launcher { return program.NewOutside(c.Environ, c.Dir) }

// command is a word of the command line.
type command struct {
	name, args, about string
	run               func(*call, context.Context) error
	flags             func(*call, *flag.FlagSet)
	takes             takes
	check             func(*call) error // what can be known to be wrong before the fleet is reached
	alone             bool              // it needs no fleet, or reaches it by itself
	by                engine.Role       // whoever may no less than they; "" is anybody
}

// takes is how many arguments a command takes, and what they name.
type takes struct {
	least, most int
	what        string
}

var (
	nothing     = takes{}
	oneTask     = takes{1, 1, "task"}
	maybeOne    = takes{0, 1, "task"}
	manyTasks   = takes{1, math.MaxInt, "task"}
	maybeWorker = takes{0, 1, "worker"}
	anything    = takes{0, math.MaxInt, ""}
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{message.Errorf(format, args...)} }

func commands() []command {
	return []command{
		{"up", "[--slots N] [--listen ADDR]", "start a fleet on this machine: a server and a worker", (*call).up,
			(*call).upFlags, nothing, (*call).checkUp, true, ""},
		{"worker", "--slots N [--name NAME] [--allow-yolo]", "run tasks of the fleet on this machine", (*call).worker,
			(*call).workerFlags, nothing, (*call).checkWorker, false, engine.Worker},
		{"submit", `"TASK" --repo URL|PATH [--base REF] [--mode M] [--max-budget-usd N] [--count N]`, "submit a task",
			(*call).submit, (*call).submitFlags, anything, (*call).checkSubmit, false, ""},
		{"ps", "[TASK|QUESTION] [--all] [--json]", "list tasks, or show one task and its questions", (*call).ps,
			(*call).psFlags, maybeOne, nil, false, ""},
		{"status", "[--all] [--json]", "overview: queue, workers, tasks, open questions, cost", (*call).status,
			(*call).allFlag, nothing, nil, false, ""},
		{"workers", "[--json]", "list workers", (*call).listWorkers, nil, nothing, nil, false, ""},
		{"logs", "TASK [--json]", "show the log of a task", (*call).logs, nil, oneTask, nil, false, ""},
		{"watch", "TASK [--json]", "follow the log until the task waits or ends", (*call).watch, nil, oneTask, nil,
			false, ""},
		{"answer", "TASK|QUESTION --option ID [--input TEXT] [--comment TEXT]", "answer a task's question", (*call).answer,
			(*call).answerFlags, oneTask, nil, false, ""},
		{"cancel", "TASK…", "cancel tasks", (*call).cancel, nil, manyTasks, nil, false, ""},
		{"result", "TASK [--patch] [--branch] [--json]", "show a task's result; --branch fetches it into this repository",
			(*call).result, (*call).resultFlags, oneTask, nil, false, ""},
		{"verify", "[TASK]", "check the logs of ended tasks, record by record", (*call).verify, nil, maybeOne, nil,
			false, ""},
		{"restore", "", "restore lost fleet records from the logs of this machine's workers", (*call).restore, nil, nothing,
			nil, false, engine.Worker},
		{"prune", "[--older-than 30d] [--yes]", "list data of tasks that ended long ago; --yes removes it", (*call).prune,
			(*call).pruneFlags, nothing, nil, false, engine.Admin},
		{"drain", "[WORKER]", "let one or all workers finish their tasks and exit", (*call).drain, nil, maybeWorker, nil,
			false, engine.Worker},
		{"enroll", "[NAME PUBLIC-KEY]", "print your key for answers; with a name and a key, let another user answer",
			(*call).enroll, nil, anything, nil, true, ""},
		{"rights", "", "print the roles' rights as configuration for your own NATS server", (*call).rights, nil, nothing, nil,
			true, ""},
		{"metrics", "[--listen ADDR]", "print metrics for Prometheus", (*call).metrics, (*call).metricsFlags, nothing, nil,
			false, ""},
	}
}

// Main runs the program and returns its exit code.
func Main(env cli.Env) int {
	if len(env.Args) > 0 && env.Args[0] == worker.TaskCommand {
		return runTask(env)
	}
	first, again, stop := env.Signals(context.Background())
	defer stop()
	c := &call{Env: env, words: i18n.For(i18n.Choose("", env.Getenv))}
	err := c.run(signals{first, again})
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return cli.ExitDone
	case errors.As(err, &usage):
		c.complain(err)
		return cli.ExitUsage
	case errors.Is(err, context.Canceled):
		return cli.ExitInterrupted
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, engine.ErrNoFleet):
		c.complain(err)
		return cli.ExitInput
	}
	c.complain(err)
	return cli.ExitError
}

// signals are the contexts of a call: first ends with the first signal, again with
// the second.
type signals struct{ first, again context.Context }

type secondKey struct{}

func (c *call) complain(err error) {
	fmt.Fprintln(c.Stderr, "coder fleet: "+c.words.TranslateError(err))
}

// tell says something beside the output.
func (c *call) tell(text string) { fmt.Fprintln(c.Stderr, "coder fleet: "+c.words.TranslateText(text)) }

func (c *call) warn(format string, args ...any) {
	fmt.Fprintln(c.Stderr, "coder fleet: "+c.words.T(format, args...))
}

func (c *call) say(format string, args ...any) {
	fmt.Fprintln(c.Stdout, c.words.T(format, args...))
}

func (c *call) run(s signals) error {
	all := commands()
	if len(c.Args) == 0 || slices.Contains([]string{"help", "--help", "-h"}, c.Args[0]) {
		return c.help(all)
	}
	i := slices.IndexFunc(all, func(x command) bool { return x.name == c.Args[0] })
	if i < 0 {
		var names []string
		for _, x := range all {
			names = append(names, x.name)
		}
		if near := nearest.Find(c.Args[0], names); near != "" {
			return usagef("unknown fleet command %s; did you mean %s?", oneLine(c.Args[0]), near)
		}
		return usagef("unknown fleet command %s; coder fleet help lists them", oneLine(c.Args[0]))
	}
	if err := c.parse(all[i]); err != nil {
		return err
	}
	ctx := context.WithValue(s.first, secondKey{}, s.again)
	defer func() {
		if c.conn != nil {
			c.conn.Close()
		}
	}()
	if !all[i].alone {
		if err := c.reach(ctx); err != nil {
			return err
		}
		if err := c.may(all[i].by); err != nil {
			return err
		}
	}
	err := all[i].run(c, ctx)
	if c.conn != nil && err != nil && errors.Is(c.conn.LastError(), nats.ErrPermissionViolation) {
		return message.Errorf("the server denied access: %w", c.conn.LastError())
	}
	return err
}

// may refuses what the token in use is not for, where that is known.
func (c *call) may(least engine.Role) error {
	rank := []engine.Role{engine.Person, engine.Worker, engine.Admin}
	if has := slices.Index(rank, c.link.Role); has >= 0 && has < slices.Index(rank, least) {
		return message.Errorf("this needs the token of the role %s, but the current token has the role %s (%s)", least,
			c.link.Role, c.link.TokenFile)
	}
	return nil
}

func (c *call) help(all []command) error {
	c.say("coder fleet: run many agents on one or more machines")
	fmt.Fprintln(c.Stdout)
	for _, x := range all {
		fmt.Fprintf(c.Stdout, "  coder fleet %s %s\n        %s\n", x.name, x.args, c.words.T(x.about))
	}
	fmt.Fprintln(c.Stdout)
	c.say("Every command takes --dir, the fleet folder (default ~/.coder/fleet), and --url with --token-file, --creds or --ca, --cert and --key to reach another server.")
	return nil
}

// parse reads the flags of a command, which may stand anywhere, checks what was
// given, and finds the fleet. Where help is asked for it is given, and the error
// is [flag.ErrHelp].
func (c *call) parse(x command) error {
	f := flag.NewFlagSet(x.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.dir, "dir", "", "")
	f.BoolVar(&c.json, "json", false, "")
	var role string
	f.StringVar(&c.link.URL, "url", "", "")
	f.StringVar(&role, "as", "", "")
	f.StringVar(&c.link.TokenFile, "token-file", "", "")
	f.StringVar(&c.link.Creds, "creds", "", "")
	f.StringVar(&c.link.CA, "ca", "", "")
	f.StringVar(&c.link.Cert, "cert", "", "")
	f.StringVar(&c.link.Key, "key", "", "")
	if x.flags != nil {
		x.flags(c, f)
	}
	rest := c.Args[1:]
	for {
		err := f.Parse(rest)
		if errors.Is(err, flag.ErrHelp) {
			return cmp.Or(c.help([]command{x}), err)
		}
		if err != nil {
			return usagef("coder fleet %s: %v", x.name, err)
		}
		if rest = f.Args(); len(rest) == 0 {
			break
		}
		c.args, rest = append(c.args, rest[0]), rest[1:]
	}
	switch n := len(c.args); {
	case n > x.takes.most && x.takes.most == 0:
		return usagef("coder fleet %s takes no arguments", x.name)
	case n < x.takes.least || n > x.takes.most:
		return usagef("coder fleet %s needs one %s", x.name, x.takes.what)
	}
	c.link.Role = engine.Role(role)
	if c.dir == "" {
		c.dir = filepath.Join(c.home(), "fleet")
	}
	var err error
	if c.dir, err = filepath.Abs(c.dir); err != nil || x.check == nil {
		return err
	}
	return x.check(c)
}

// home is the person's own folder.
func (c *call) home() string {
	return cmp.Or(c.Getenv("CODER_HOME"), filepath.Join(c.Getenv("HOME"), ".coder"))
}

// reach connects to the fleet.
func (c *call) reach(ctx context.Context) (err error) {
	if c.link, err = c.link.Or(c.dir); err == nil {
		c.link, err = c.link.Absolute()
	}
	if err != nil {
		return err
	}
	if c.conn, c.js, err = c.link.Dial("coder fleet"); err != nil {
		return err
	}
	var key ed25519.PrivateKey
	if exists(authkey.Path(c.dir)) {
		if key, err = c.sealKey(); err != nil {
			return err
		}
	}
	c.Queue, err = queue.Open(ctx, c.js, c.Now, key)
	return err
}

// sealKey is the key of the fleet, with which the state of tasks is sealed.
func (c *call) sealKey() (ed25519.PrivateKey, error) {
	key, err := authkey.Open(c.dir)
	if err != nil {
		return nil, err
	}
	return worker.SealKey(key), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// store opens the logs.
func (c *call) store(ctx context.Context) (*jetstore.Store, error) {
	return jetstore.Open(ctx, c.js, c.Layout, jetstore.Options{})
}

// runTask is the process of one task.
func runTask(env cli.Env) int {
	order, err := worker.ReadOrder(env.Stdin)
	if err == nil {
		err = worker.Run(context.Background(), env, order)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return cli.ExitError
	}
	return cli.ExitDone
}

// me is the name of the person at this machine.
func (c *call) me() string {
	name := strings.Map(func(r rune) rune {
		if queue.ValidName(string(r)) {
			return r
		}
		return '-'
	}, cmp.Or(c.Getenv("CODER_FLEET_USER"), c.Getenv("USER"), c.Getenv("LOGNAME"), "user"))
	return name[:min(len(name), 64)]
}

func oneLine(s string) string { return sanitize.Line(s, 200) }

// age is how long ago something was, for people.
func age(now, then time.Time) string {
	switch d := now.Sub(then).Round(time.Second); {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
