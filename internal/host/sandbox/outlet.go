package sandbox

import "fmt"

// OutletPort is where, on the loopback of a command that has one, its [Outlet] is.
const OutletPort = 27182

// OutletOn is the descriptor on which a helper hands the listener of a [Outlet] over.
const OutletOn = 4

// OutletAddress is where a command finds its [Outlet].
var OutletAddress = fmt.Sprintf("127.0.0.1:%d", OutletPort)
