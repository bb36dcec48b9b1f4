/** Source of prompts, in the turns of wakes. */
export const SOURCE = 'network'
