package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// waitReadable waits until reading from f would not wait.
func waitReadable(ctx context.Context, f *os.File) error {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	if ready, err := poll(fds, 0); ready || err != nil {
		return err
	}
	ended, wake, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("wait for input: %w", err)
	}
	defer ended.Close()
	defer wake.Close()
	defer context.AfterFunc(ctx, func() { _ = wake.Close() })() // what waits at the other end sees it
	fds = append(fds, unix.PollFd{Fd: int32(ended.Fd()), Events: unix.POLLIN})
	if _, err := poll(fds, -1); err != nil {
		return err
	}
	return ctx.Err()
}

func poll(fds []unix.PollFd, timeout int) (ready bool, err error) {
	for {
		n, err := unix.Poll(fds, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("wait for input: %w", err)
		}
		return n > 0, nil
	}
}
