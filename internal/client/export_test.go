package client

// Engines are those that the conformance suite is run with on sockets.
var Engines = engines
