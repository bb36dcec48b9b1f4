// The MCP server for agents, which relays to the daemon by the socket and the nonce in its environment.
import { relay } from './relay.js'

const { SVC_SOCKET: socket = '', SVC_MCP_NONCE: nonce = '' } = process.env
process.stdout.on('error', () => process.exit(0))
relay({ socket, input: process.stdin, output: process.stdout, open: { nonce } }).then(
  () => process.exit(0),
  error => {
    process.stderr.write(`svc-mcp: ${error.message}\n`)
    process.exit(1)
  },
)
