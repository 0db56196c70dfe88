"use strict";
podium.ready();
