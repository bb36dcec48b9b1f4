// Served to a real browser by a site that means harm. Each trick aims at `target`, an origin, and resolves with what it got out
// of it: '' is nothing. Whether the request was served at all is judged from outside.

const PATIENCE_MS = 1500
const LINGER_MS = 400
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
const within = promise => Promise.race([promise, pause(PATIENCE_MS).then(() => '')])
const json = path => JSON.stringify({ path })

/** An element that loads from the target; its load event is what a page can observe. */
const loads = (tag, members) =>
  within(
    new Promise(resolve => {
      const element = Object.assign(document.createElement(tag), members)
      element.onload = () => resolve('loaded')
      element.onerror = () => resolve('')
      document.body.append(element)
    }),
  )

const sendsForm = (action, members, path) => {
  const form = Object.assign(document.createElement('form'), { action, method: 'post', ...members })
  // A form of type text/plain is sent as name=value: the JSON is split at its first =.
  const input = Object.assign(document.createElement('input'), { name: `{"path":"${path}","x":"`, value: '"}' })
  form.append(input)
  document.body.append(form)
  form.submit()
  return pause(LINGER_MS).then(() => '')
}

window.tricks = {
  'reads by fetch': (target, aims) => within(fetch(target + aims.read).then(reply => reply.text())),
  'reads by fetch with credentials': (target, aims) =>
    within(fetch(target + aims.read, { credentials: 'include' }).then(reply => reply.text())),
  'reads by XMLHttpRequest': (target, aims) =>
    within(
      new Promise(resolve => {
        const request = new XMLHttpRequest()
        request.onload = () => resolve(request.responseText)
        request.onerror = () => resolve('')
        request.open('GET', target + aims.read)
        request.send()
      }),
    ),
  'asks without looking': (target, aims) => within(fetch(target + aims.read, { mode: 'no-cors' }).then(() => '')),
  'writes a text that is JSON': (target, aims) =>
    within(fetch(target + aims.write, { method: 'POST', mode: 'no-cors', body: json(aims.path) }).then(() => '')),
  'writes JSON': (target, aims) =>
    within(
      fetch(target + aims.write, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: json(aims.path),
      }).then(reply => reply.text()),
    ),
  'writes without a body': (target, aims) =>
    within(fetch(target + aims.drain, { method: 'POST', mode: 'no-cors' }).then(() => '')),
  deletes: (target, aims) => within(fetch(target + aims.remove, { method: 'DELETE' }).then(reply => reply.text())),
  'sends a beacon': async (target, aims) => {
    navigator.sendBeacon(target + aims.write, json(aims.path))
    navigator.sendBeacon(target + aims.drain)
    await pause(LINGER_MS)
    return ''
  },
  'sends a form into a frame': (target, aims) => {
    document.body.append(Object.assign(document.createElement('iframe'), { name: 'inner' }))
    return sendsForm(target + aims.write, { enctype: 'text/plain', target: 'inner' }, aims.path)
  },
  'sends a form into a window': (target, aims) =>
    sendsForm(target + aims.write, { enctype: 'text/plain', target: '_blank' }, aims.path),
  'shows an image': (target, aims) => loads('img', { src: target + aims.read }),
  'runs a script': (target, aims) => loads('script', { src: target + aims.read }),
  // A frame has a load event for a refusal too.
  'frames it': (target, aims) => loads('iframe', { src: target + aims.read }).then(() => ''),
  'opens a window': async (target, aims) => {
    window.open(target + aims.read)
    await pause(LINGER_MS)
    return ''
  },
  'is sent on by its own site': (target, aims) =>
    within(
      fetch(`/on?to=${encodeURIComponent(target + aims.write)}`, {
        method: 'POST',
        mode: 'no-cors',
        body: json(aims.path),
      }).then(() => ''),
    ),
  'follows the events': (target, aims) =>
    within(
      new Promise(resolve => {
        const source = new EventSource(target + aims.stream)
        const end = got => {
          source.close()
          resolve(got)
        }
        source.onopen = () => end('opened')
        source.onerror = () => end('')
      }),
    ),
  'opens a web socket': (target, aims) =>
    within(
      new Promise(resolve => {
        const socket = new WebSocket(target.replace(/^http/, 'ws') + aims.socket)
        socket.onopen = () => {
          socket.close()
          resolve('opened')
        }
        socket.onerror = () => resolve('')
      }),
    ),
}
