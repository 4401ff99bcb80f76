package mem_test

import (
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/event/eventtest"
	"coder/internal/record/session"
	"coder/internal/record/session/sessiontest"
	"coder/internal/record/store/mem"
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
