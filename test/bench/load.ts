// Load generator, a process of its own: node load.ts SOCKET METHOD PATH-PREFIX CLIENTS SECONDS BODY [fresh]
// A number for SOCKET is a TCP port; `fresh` opens a connection for each request; BENCH_TOKEN is sent as a bearer token.
// Prints {"requests", "seconds", "p50", "p99"} (milliseconds) as JSON. `#` in path and body becomes a running number.
import http from 'node:http'

const [socketPath, method = 'PUT', path = '/', clients = '1', seconds = '2', body = '', fresh = ''] =
  process.argv.slice(2)
const where = /^\d+$/.test(socketPath ?? '') ? { host: '127.0.0.1', port: Number(socketPath) } : { socketPath }
const { BENCH_TOKEN: token } = process.env
const known = token ? { authorization: `Bearer ${token}` } : {}
const agent = new http.Agent({ keepAlive: fresh === '', maxSockets: Number(clients) })
const times: number[] = []
const until = performance.now() + Number(seconds) * 1000
let n = 0

function request(): Promise<void> {
  const mark = `${process.pid}-${n++}`
  const payload = body.replaceAll('#', mark)
  const began = performance.now()
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload), ...known }
    const call = http.request({ ...where, method, path: path.replaceAll('#', mark), agent, headers }, response => {
      response.resume()
      response.on('end', () => {
        if ((response.statusCode ?? 500) >= 300) reject(new Error(`status ${response.statusCode}`))
        times.push(performance.now() - began)
        resolve()
      })
    })
    call.once('error', reject)
    call.end(payload)
  })
}

const began = performance.now()
await Promise.all(
  Array.from({ length: Number(clients) }, async () => {
    while (performance.now() < until) await request()
  }),
)
times.sort((a, b) => a - b)
const at = (q: number) => Number((times[Math.min(times.length - 1, Math.floor(times.length * q))] ?? 0).toFixed(3))
console.log(
  JSON.stringify({ requests: times.length, seconds: (performance.now() - began) / 1000, p50: at(0.5), p99: at(0.99) }),
)
agent.destroy()
