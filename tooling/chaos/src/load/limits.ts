/** How many capped jobs may run at once in a worker. */
export const cap = 2;
