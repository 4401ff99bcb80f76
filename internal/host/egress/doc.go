// Package egress gives confined commands access to some network hosts through a proxy. It guarantees:
//
//  1. Every connection is approved by host name and port before coder resolves
//     or sends anything. A rejected host learns nothing about the command.
//  2. An approved host is reached only at a public address, the very one
//     that was checked, unless the user allows others.
//  3. The command has no other way out: it has its own network, in which the
//     proxy listens, and it can only name hosts.
//  4. Connections, headers and idle time are bounded, and everything ends with
//     the command.
//
// coder does not inspect traffic with approved hosts: TLS is end to end between the command and the
// host.
package egress
