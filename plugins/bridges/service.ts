/** Bridge instances are stored, checked and listed; nothing runs them yet. */
export class BridgesService {}
