package mem_test

import (
	"testing"

	"coder/internal/event"
	"coder/internal/event/eventtest"
	"coder/internal/session"
	"coder/internal/session/sessiontest"
	"coder/internal/store/mem"
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
