import { definePlugin, Fault, type PluginKernel, surfaceOf } from 'svc/plugin'
import { Note, Notes } from '../notes/api.js'

/** Puts notes into capitals, and lets nobody publish a secret one. To tap a hook is to require its owner. */
class Shout {
  constructor(private readonly kernel: PluginKernel<{ notes: typeof Notes }>) {}

  render(text: string): string {
    return text.toUpperCase()
  }

  refusal(id: string): Fault | undefined {
    const secret = this.kernel.records.get(Note, id)?.spec.title.startsWith('secret')
    return secret ? new Fault('note_secret', 403, `${id} is secret`, { next: 'give it another title' }) : undefined
  }
}

const { tap } = surfaceOf<Shout>()

export default definePlugin({
  name: 'acme.shout',
  version: '1.0.0',
  requires: { notes: Notes },
  service: async () => Shout,
}).surface({
  taps: [
    tap(
      Notes,
      notes => notes.rendering,
      service => text => service.render(text),
    ),
    tap(
      Notes,
      notes => notes.publishing,
      service => async id => service.refusal(id),
    ),
  ],
})
