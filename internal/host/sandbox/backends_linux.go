package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// probeTime is the most that trying a backend may take.
const probeTime = 5 * time.Second

// backends are those there may be, best first.
func backends(o Options) (list []backend) {
	abi := landlockVersion()
	list = append(list, backend{name: Namespaces, abi: abi, probe: func(ctx context.Context) error {
		return try(ctx, inOwnSpaces(o.Exe, order{places: places{network: false}, probe: true}))
	}})
	if o.LookPath == nil {
		o.LookPath = func(string) (string, error) { return "", exec.ErrNotFound }
	}
	if bwrap, err := o.LookPath("bwrap"); err == nil {
		list = append(list, backend{name: Bubblewrap, abi: abi, through: []string{bwrap}, probe: func(ctx context.Context) error {
			line := append([]string{bwrap}, bwrapArgs(places{})...)
			return try(ctx, Line{Argv: append(line, helper(o.Exe, order{stage: stageBwrap, probe: true})...)})
		}})
	}
	return append(list, backend{name: Landlock, abi: abi, probe: func(ctx context.Context) error {
		return try(ctx, Line{Argv: helper(o.Exe, order{stage: stageLandlock, probe: true})})
	}})
}

// try runs a helper that confines itself and ends.
func try(ctx context.Context, line Line) error {
	ctx, stop := context.WithTimeout(ctx, probeTime)
	defer stop()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, line.Argv[0], line.Argv[1:]...)
	if line.Attr != nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
		line.Attr(cmd.SysProcAttr)
	}
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{}, time.Second
	cmd.Stdout, cmd.Stderr = &stderr, &stderr
	err := cmd.Run()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		return errors.New(strings.TrimPrefix(said, SetupPrefix))
	}
	return err
}
