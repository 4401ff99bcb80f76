package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfinedNetwork(t *testing.T) {
	tcp := listen(t, "tcp", "127.0.0.1:0")
	abstract := listen(t, "unix", fmt.Sprintf("@sandbox-test-%d", os.Getpid()))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		off, on := w.limits(), w.limits()
		on.Network = true
		for _, c := range []struct {
			script  string
			off, on bool // whether it works
		}{
			{"$SELF __attack dial tcp " + tcp, false, true},
			{"$SELF __attack dial unix " + abstract, false, s.abi < abiScopes},
			{"$SELF __attack dial tcp 192.0.2.1:80", false, false},
			{"$SELF __attack own", s.Backend() != Landlock, true},
			{"$SELF __attack family 1", s.Backend() != Landlock, s.Backend() != Landlock || s.abi >= abiSockets},
		} {
			if strings.Contains(c.script, "192.0.2.1") {
				on = off // nothing is to leave this machine
			}
			if got := w.run(t, wrap(t, s, off), c.script); (got.code == 0) != c.off {
				t.Errorf("without network: %s: %+v", c.script, got)
			}
			if bare := w.run(t, Wrapper{}, c.script); c.on && bare.code != 0 {
				t.Logf("%s does not work here at all: %s", c.script, bare.stderr)
				continue
			}
			if got := w.run(t, wrap(t, s, on), c.script); (got.code == 0) != c.on {
				t.Errorf("with network: %s: %+v", c.script, got)
			}
			on.Network = true
		}
		w.run(t, wrap(t, s, off), "$SELF __attack dial udp "+udp.LocalAddr().String())
		_ = udp.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, _, err := udp.ReadFrom(make([]byte, 100)); err == nil {
			t.Errorf("%d bytes came through", n)
		}
	})
}

func listen(t *testing.T, network, addr string) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestConfinedProcessesOutsideAreOutOfReach(t *testing.T) {
	other := otherProcess(t)
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		through := wrap(t, s, w.limits())
		for _, script := range []string{`$SELF __attack ptrace $1`, `cat /proc/$1/environ`, `ls /proc/$1/root/`} {
			if bare := w.run(t, Wrapper{}, script, other); bare.code != 0 {
				t.Errorf("%s does not work bare: %+v", script, bare)
			}
			if got := w.run(t, through, script, other); got.code == 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
		got := w.run(t, through, `$SELF __attack kill $1`, other)
		reported := slices.Contains(s.Report(w.limits()).Enforced, "no signals to other programs")
		if (got.code != 0) != reported {
			t.Errorf("kill: %+v, but enforced is %v", got, reported)
		}
		if got := w.run(t, through, `sleep 60 & kill -0 $! && kill $!`); got.code != 0 {
			t.Errorf("a child cannot be signalled: %+v", got)
		}
	})
}
