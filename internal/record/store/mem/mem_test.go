package mem_test

import (
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/session"
	"coder/internal/record/store/mem"
	"coder/testkit/eventtest"
	"coder/testkit/sessiontest"
)

func TestStore(t *testing.T) {
	eventtest.TestStore(t, func(*testing.T) event.Store { return new(mem.Store) })
}

func TestSimulation(t *testing.T) {
	eventtest.Simulate(t, false, func(string) event.Store { return new(mem.Store) })
}

func TestSessions(t *testing.T) {
	sessiontest.TestStore(t, func(*testing.T) session.Store { return new(mem.Sessions) })
}
