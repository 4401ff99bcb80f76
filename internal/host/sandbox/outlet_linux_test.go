package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// greet answers every connection through an outlet, until it is closed, and counts them.
func greet(t *testing.T, d *Outlet) (count func() int) {
	t.Helper()
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := d.Accept()
			if err != nil {
				return
			}
			n++
			_, _ = io.WriteString(c, "hello from outside\n")
			c.Close()
		}
	}()
	return func() int {
		d.Close()
		<-done
		return n
	}
}

func TestConfinedCommandsReachAnOutletAndNothingElse(t *testing.T) {
	tcp := listen(t, "tcp", "127.0.0.1:0")
	abstract := listen(t, "unix", fmt.Sprintf("@sandbox-outlet-%d", os.Getpid()))
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		path := listen(t, "unix", w.outside+"/socket")
		l := w.limits()
		l.Hosts, l.Hide = []string{"registry.example"}, []string{path}
		run := func(script string) (ended, int) {
			d, err := NewOutlet()
			if err != nil {
				t.Fatal(err)
			}
			count := greet(t, d)
			cmd := w.command(t, wrap(t, s, l), script)
			return finish(t, cmd, d.File), count()
		}
		words := fmt.Sprint(s.Report(l).Enforced)
		const hear = "$SELF __attack hear " + "127.0.0.1:27182"
		if !s.CanOpenOutlets() {
			if got, n := run(hear); got.code == 0 || n > 0 || !strings.Contains(words, "no network, not even to hosts") {
				t.Errorf("%+v, %d connections; %s", got, n, words)
			}
			return
		}
		if got, n := run(hear + " && " + hear); got.stdout != "hello from outside\nhello from outside\n" || n != 2 {
			t.Errorf("%+v, %d connections", got, n)
		}
		if !strings.Contains(words, "network only to registry.example") {
			t.Errorf("said: %s", words)
		}
		for _, script := range []string{
			"$SELF __attack dial tcp " + tcp, "$SELF __attack dial tcp 192.0.2.1:80", "$SELF __attack dial unix " + abstract, "$SELF __attack dial unix " + path,
			"$SELF __attack family 40", // vsock
			"ls -l /proc/self/fd /proc/$PPID/fd /proc/1/fd | grep socket:",
		} {
			if got, n := run(script); got.code == 0 || n > 0 {
				t.Errorf("%s: %+v, %d connections", script, got, n)
			}
		}
		// One command's outlet is not another's, and none is open without hosts.
		l.Hosts = nil
		if got, n := run(hear); got.code == 0 || n > 0 {
			t.Errorf("without hosts: %+v, %d connections", got, n)
		}
	})
}

// An outlet that nobody hands over ends when it is closed, and when its helper does.
func TestAnOutletThatIsNotHandedOverEnds(t *testing.T) {
	for name, end := range map[string]func(*Outlet){"closed": func(d *Outlet) { d.Close() }, "no helper": func(d *Outlet) { d.File.Close() }} {
		d, err := NewOutlet()
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { _, err := d.Accept(); failed <- err }()
		end(d)
		if err := <-failed; err == nil {
			t.Errorf("%s: a connection was accepted", name)
		}
		d.Close()
	}
}

// hear prints what a server says.
func hear(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(os.Stdout, c)
	return err
}
